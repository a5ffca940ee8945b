"""Infrastructure time is not policy time: limits stand still while a real policy server cannot answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from testing.factories import make_experiment, make_task
from tests.training.sampler.test_server import TOKEN
from tests.workers.env.test_branch_episodes import machine, run_all  # noqa: F401 (fixture)
from tests.workers.env.test_branch_policy import SAMPLING, policy_url  # noqa: F401 (fixture)
from training.contracts.policy_server import WEIGHTS
from training.contracts.types import Purpose
from training.contracts.weight_requests import Begin, Commit, WeightsRequest
from webapp.experiments.models import Attempt, AttemptStatus, Experiment
from webapp.trajectories.models import Trajectory
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.viewer_parts import card_context

pytestmark = pytest.mark.django_db(transaction=True)
PAUSE_S = 7.0
DESKTOPS = {
    "provider": "qemu",
    "max_turns": 3,
    "retries": 0,
    "turn_timeout_s": 1.0,  # the client's four tries together are shorter than the pause
    "trajectory_timeout_s": 5.0,
    "qemu": {"snapshot_members": 0},
}


def experiment_at(url: str) -> Experiment:
    found = make_experiment(config={"desktops": DESKTOPS, "sampling": SAMPLING})
    Attempt.objects.create(
        experiment=found, number=1, status=AttemptStatus.RUNNING, policy_url=url, policy_token=TOKEN
    )
    return found


def run_one(experiment: Experiment) -> Trajectory:
    request = GroupSpec(task=make_task(), size=1, purpose=Purpose.TRAIN)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment, attempt=1)
    return run_all(group).trajectories.get()


@contextmanager
def paused(url: str, seconds: float) -> Iterator[None]:
    """A weight sync that takes `seconds` and brings nothing."""
    _sync(url, Begin(channel="ipc", policy_version=0))
    timer = threading.Timer(seconds, _sync, [url, Commit(channel="ipc", policy_version=0)])
    timer.start()
    try:
        yield
    finally:
        timer.join()


def _sync(url: str, step: WeightsRequest) -> None:
    wire = WEIGHTS.write_request(step)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(url + wire.path, content=wire.body, headers=headers, trust_env=False, timeout=60)
    answer.raise_for_status()


def test_a_weight_sync_longer_than_every_limit_ends_no_trajectory(machine, policy_url):  # noqa: F811
    experiment = experiment_at(policy_url)
    with paused(policy_url, PAUSE_S):
        row = run_one(experiment)
    assert (row.status, row.num_turns, row.error) == ("truncated", 3, "")
    waited = [turn.completion.waited_s for turn in trajectory_of(row).turns]
    assert waited[0] > PAUSE_S - 2
    assert max(waited[1:]) < PAUSE_S - 2


def test_the_page_tells_waiting_apart_from_deciding(machine, policy_url):  # noqa: F811
    experiment = experiment_at(policy_url)
    with paused(policy_url, 1.0):
        row = run_one(experiment)
    first = row.turns.get(index=0)
    card = card_context(first)
    assert 0 < card["waited_ms"] <= 1000 * (time.time() - first.observed_at.timestamp())
    whole_ms = 1000 * (first.completed_at - first.observed_at).total_seconds()
    assert card["think_ms"] + card["waited_ms"] == pytest.approx(whole_ms, abs=2)
    spent = first.spent_ms
    assert spent["pause"] == pytest.approx(card["waited_ms"], abs=1)
    assert {"report", "transfer", "prepare", "queue", "prefill", "decode"} <= spent.keys()
    assert "spent_ms" not in first.completion, "it is stored once"
    all_ms = sum(sum(turn.spent_ms.values()) for turn in row.turns.all())
    assert all_ms <= 1000 * (row.ended_at - row.started_at).total_seconds()


def test_a_slow_policy_still_meets_its_limit(machine, policy_url):  # noqa: F811
    """What the engine computes is the policy's own time: the deadline does not move for it."""
    experiment = experiment_at(policy_url)
    desktops = DESKTOPS | {"trajectory_timeout_s": 1e-3}
    Experiment.objects.filter(pk=experiment.pk).update(config=experiment.config | {"desktops": desktops})
    experiment.refresh_from_db()
    row = run_one(experiment)
    assert (row.status, row.num_turns) == ("truncated", 1)
