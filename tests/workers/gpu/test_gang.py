"""Hosts of one attempt find each other in time, or it ends and says which one did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils.timezone import now

from testing.factories import make_attempt, make_experiment, make_team
from testing.fleet_rows import make_worker
from training.distributed.launch import Gang
from webapp.experiments.models import Attempt, Experiment, GangMember
from webapp.experiments.services import gangs
from webapp.fleet.models import Worker, WorkerStatus
from webapp.worker_door import gangs as door_gangs
from webapp.worker_door.attempts import HeldAttempt, held
from workers import identity
from workers.gpu import attempt as gpu_attempt
from workers.gpu import gang
from workers.gpu.train_network import TrainAddress, own_train_address

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, str]]:
    """(attempt, host, worker) of the jobs that were sent; Redis itself is not asked."""
    jobs: list[tuple[int, int, str]] = []
    monkeypatch.setattr(door_gangs, "send_job", lambda _name, pk, host, only: jobs.append((pk, host, only)))
    return jobs


@pytest.fixture(autouse=True)
def _network(settings) -> None:
    settings.TRAIN_NETWORK = "127.0.0.0/8"


@pytest.fixture
def first() -> HeldAttempt:
    """An attempt over two hosts, on this process."""
    members = [{"worker": "gpu@b", "keys": []}]
    experiment = make_experiment(team=make_team(), placed_members=members)
    return held(make_attempt(experiment, worker_name=identity.current().name))


def test_a_host_that_does_not_come_is_named(
    first: HeldAttempt, called: list[tuple[int, int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gang, "COME_WITHIN_S", 1.0)
    with pytest.raises(gang.HostsMissing, match=r"^gpu@b did not come within 1 s$"):
        gang.gather(first, tmp_path, tmp_path / "checkpoints", lambda: None)
    assert called == [(first.pk, 1, "gpu@b")]


def test_the_first_host_learns_why_another_one_left(first: HeldAttempt, tmp_path: Path) -> None:
    def another() -> None:
        gangs.leave_gang(attempt_id=first.pk, host=1, problem="no such model")

    with pytest.raises(gang.GangBroken, match=r"^gpu@b: no such model$"):
        gang.gather(first, tmp_path, tmp_path / "checkpoints", another)
    assert str(gang.why_broken(first)) == "gpu@b: no such model"


@pytest.mark.parametrize(
    ("is_left_alone", "status", "goes_on"), [(True, "incomplete", "queued"), (False, "crashed", "failed")]
)
def test_only_what_failed_uses_restarts_up(
    first: HeldAttempt, is_left_alone: bool, status: str, goes_on: str, tmp_path: Path
) -> None:
    """An attempt that waited for hosts did not crash, also when another host says so first."""
    reason = "gpu@c did not come within 1 s"

    class Gathering:
        def __init__(self, attempt: HeldAttempt, _config: object) -> None:
            self._attempt = attempt

        def run(self) -> None:
            gang.gather(self._attempt, tmp_path, tmp_path / "checkpoints", self._another)

        def _another(self) -> None:
            gangs.leave_gang(attempt_id=self._attempt.pk, host=1, problem=reason, is_left_alone=is_left_alone)

    Attempt.objects.get(pk=first.pk).delete()
    experiment = Experiment.objects.get(pk=first.experiment_id)
    here = identity.current().name
    Experiment.objects.filter(pk=experiment.pk).update(
        config={"checkpoints": {"max_restarts": 0}}, status="queued", placed_worker=here, dispatched_at=now()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_attempt, "Supervision", Gathering)
        gpu_attempt.run(experiment.pk, 1)
    attempt = experiment.attempts.get()
    assert (attempt.status, attempt.reason) == (status, f"gpu@b: {reason}")
    experiment.refresh_from_db()
    assert experiment.status == goes_on


def test_a_host_that_is_lost_before_it_comes_is_not_waited_for(first: HeldAttempt, tmp_path: Path) -> None:
    worker = make_worker(queue="gpu", name="gpu@b")

    def is_found_lost() -> None:
        Worker.objects.filter(pk=worker.pk).update(status=WorkerStatus.LOST)

    with pytest.raises(gang.HostsMissing, match=r"^gpu@b does not answer any more$"):
        gang.gather(first, tmp_path, tmp_path / "checkpoints", is_found_lost)


def test_a_host_that_is_lost_later_ends_the_attempt_by_its_name(first: HeldAttempt, tmp_path: Path) -> None:
    """Ranks elsewhere would wait for it in a collective."""
    worker = make_worker(queue="gpu", name="gpu@b")

    def another() -> None:
        GangMember.objects.filter(host=1).update(address="10.0.0.2:7")

    assert gang.gather(first, tmp_path, tmp_path / "checkpoints", another)
    assert gang.why_broken(first) is None
    Worker.objects.filter(pk=worker.pk).update(status=WorkerStatus.LOST)
    broken = gang.why_broken(first)
    assert str(broken) == "gpu@b does not answer any more"
    assert not isinstance(broken, gang.HostsMissing), "it had come: this is a crash"


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("", None),
        ("lo", TrainAddress("127.0.0.1", "lo")),
        ("127.0.0.1/32", TrainAddress("127.0.0.1", "lo")),
        ("127.0.0.0/8", TrainAddress("127.0.0.1", "lo")),
        ("203.0.113.0/24", None),
        ("no-such0", None),
    ],
)
def test_a_host_is_in_the_network_that_the_operator_named(settings, named: str, found: object) -> None:
    settings.TRAIN_NETWORK = named
    assert own_train_address() == found


def test_a_host_outside_the_network_says_so(first: HeldAttempt, settings, tmp_path: Path) -> None:
    settings.TRAIN_NETWORK = "203.0.113.0/24"
    with pytest.raises(gang.GangBroken, match="DESKHAND_TRAIN_NETWORK names no network that this host is in"):
        gang.gather(first, tmp_path, tmp_path / "checkpoints", lambda: None)


def test_all_hosts_write_the_same_file_and_find_the_same_folder(first: HeldAttempt, tmp_path: Path) -> None:
    def another() -> None:
        GangMember.objects.filter(host=1).update(address="10.0.0.2:7")

    file = gang.gather(first, tmp_path, tmp_path / "checkpoints", another)
    assert file is not None
    found = Gang.read(file)
    assert (found.host, found.addresses[1], found.interface) == (0, ("10.0.0.2", 7), "lo")
    assert found.addresses[0][0] == "127.0.0.1"

    again = held(Attempt.objects.get(pk=first.pk))
    gang.require_shared(again, tmp_path / "checkpoints")


def test_a_folder_of_checkpoints_that_is_not_shared_is_refused(
    first: HeldAttempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang, "COME_WITHIN_S", 1.0)
    monkeypatch.setattr(gang, "MARK_SEEN_WITHIN_S", 0.0)
    with pytest.raises(gang.GangBroken):
        gang.gather(first, tmp_path, tmp_path / "here", lambda: None)
    with pytest.raises(gang.GangBroken, match=r"checkpoints.directory: \S*there is not the folder"):
        gang.require_shared(held(Attempt.objects.get(pk=first.pk)), tmp_path / "there")
