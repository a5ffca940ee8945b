"""The coordinator client: patient with a restart, plain about mistakes."""

from __future__ import annotations

import pytest

from testing.training.toy_coordinator import TOKEN, ToyCoordinator
from testing.training.toy_desktops import picture
from training.contracts.config import parse_config
from training.contracts.coordinator import SampleGroup
from training.contracts.stage_names import StageName
from training.contracts.types import Control, Purpose
from training.contracts.weight_requests import Abort
from training.loop.train import coordinator_of
from training.rollouts.coordinator_client import (
    CoordinatorAddress,
    CoordinatorClient,
    CoordinatorRefused,
    CoordinatorUnreachable,
)


def client(
    server: ToyCoordinator, *, token: str = TOKEN, patience_s: float = 5.0, engine_start_s: float = 5.0
) -> CoordinatorClient:
    address = CoordinatorAddress(url=server.url, token=token)
    return CoordinatorClient(address, patience_s=patience_s, engine_start_s=engine_start_s)


def test_tasks_and_groups_travel_as_types(coordinator: ToyCoordinator) -> None:
    ours = client(coordinator)
    task = ours.tasks("train")[0]
    wanted = SampleGroup(task_id=task.task_id, size=2, purpose=Purpose.TRAIN, policy_version=0)
    group_id = ours.request_group(wanted)
    answer = ours.finished_groups(0, 1.0)
    assert [group.group_id for group in answer.groups] == [group_id]
    assert len(answer.groups[0].scored()) == 2
    assert ours.finished_groups(answer.cursor, 0.0).groups == ()


def test_server_errors_are_tried_again(coordinator: ToyCoordinator) -> None:
    coordinator.wishes.failures = [503, 500, 502]
    assert client(coordinator).control() is Control.RUN
    assert coordinator.wishes.failures == []


def test_patience_is_bounded(coordinator: ToyCoordinator) -> None:
    coordinator.wishes.failures = [503] * 50
    with pytest.raises(CoordinatorUnreachable, match="GET /control: .* silent"):
        client(coordinator, patience_s=0.5).control()


def test_a_policy_server_may_load_for_longer_than_the_patience(coordinator: ToyCoordinator) -> None:
    coordinator.wishes.loading = 4
    ours = client(coordinator, patience_s=0.0)
    assert ours.control() is Control.RUN
    assert coordinator.wishes.loading == 0


def test_a_step_that_is_never_repeated_waits_for_a_policy_server_that_loads(
    coordinator: ToyCoordinator,
) -> None:
    coordinator.wishes.loading = 2
    client(coordinator).sync_weights(Abort(channel="nccl", reason="a test"))
    assert [request["stage"] for request in coordinator.seen["/weights"]] == ["abort"]


def test_the_patience_with_a_crash_begins_after_the_loading(coordinator: ToyCoordinator) -> None:
    coordinator.wishes.loading, coordinator.wishes.failures = 3, [500]
    assert client(coordinator, patience_s=0.15).control() is Control.RUN


def test_a_policy_server_that_never_loads_is_named(coordinator: ToyCoordinator) -> None:
    coordinator.wishes.loading = 50
    with pytest.raises(CoordinatorUnreachable, match=r"not ready within 0 s \(loading the model"):
        client(coordinator, engine_start_s=0.3).control()


def test_the_trainer_is_as_patient_as_the_settings_say() -> None:
    address = CoordinatorAddress(url="http://127.0.0.1:1", token=TOKEN)
    slow = parse_config({"engine": {"name": "sglang", "start_timeout_s": 1800}})
    assert coordinator_of(slow, address).engine_start_s == slow.engine.start_limit_s > 1800


def test_a_coordinator_that_is_gone_is_named(coordinator: ToyCoordinator) -> None:
    ours = client(coordinator, patience_s=0.3)
    coordinator.close()
    with pytest.raises(CoordinatorUnreachable, match=coordinator.url):
        ours.tasks("train")


def test_a_refusal_is_not_tried_again(coordinator: ToyCoordinator) -> None:
    with pytest.raises(CoordinatorRefused, match="401") as refusal:
        client(coordinator, token="wrong").control()
    assert refusal.value.status == 401


def test_missing_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKHAND_COORDINATOR_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("DESKHAND_COORDINATOR_TOKEN", raising=False)
    with pytest.raises(ValueError, match="DESKHAND_COORDINATOR_TOKEN is not set"):
        CoordinatorAddress.from_environment()


def test_every_route_answers_what_the_client_reads(coordinator: ToyCoordinator) -> None:
    ours = client(coordinator)
    task = ours.tasks("heldout")[0]
    png = picture(task, 0)
    assert ours.frame(coordinator.desktops.store(png)) == png
    assert ours.replay_candidates(task.task_id) == ()
    assert ours.checkpoints_in_use() == frozenset()
    ours.report_stage(StageName.GRPO, "started", 3, "steps")
    ours.cancel_group(7)
    ours.engine("sleep")
    assert coordinator.seen["/stage"] == [{"name": "grpo", "status": "started", "total": 3, "unit": "steps"}]
    assert coordinator.seen["/groups/{group_id}/cancel"] == [{"group_id": 7}]
    assert coordinator.seen["/engine"] == [{"command": "sleep"}]


def test_a_number_that_is_not_finite_is_refused_by_name_before_it_is_sent(
    coordinator: ToyCoordinator,
) -> None:
    with pytest.raises(ValueError, match="values.loss/policy"):
        client(coordinator).report_metrics(1, {"loss/policy": float("nan")}, 0)
    assert not coordinator.seen["/metrics"]
