"""A policy branches from its own turns: a real server of a tiny model goes on with the tokens it sampled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from testing.factories import make_experiment, make_task
from testing.training.tiny_model import tiny_folder
from tests.training.sampler.test_server import TOKEN, _port
from tests.workers.env.test_branch_episodes import machine, run_all  # noqa: F401 (fixture)
from training.contracts.coordinator import FinishedQuery
from training.contracts.types import Purpose, Source
from webapp.experiments.models import Attempt, AttemptStatus, Experiment
from webapp.trajectories.models import Trajectory
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services import branches
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.worker_door.trainer_requests.contract import TrainerCall
from webapp.worker_door.trainer_requests.rollouts import get_finished_groups

pytestmark = pytest.mark.django_db(transaction=True)
SAMPLING = {"max_context_tokens": 4096, "max_completion_tokens": 6}
DESKTOPS = {"provider": "qemu", "max_turns": 3, "retries": 0, "qemu": {"snapshot_members": 1}}


@pytest.fixture(scope="module")
def policy_url(tmp_path_factory) -> Iterator[str]:
    """A policy server of the tiny model."""
    folder = tmp_path_factory.mktemp("policy")
    config, port_file = folder / "config.yaml", folder / "port"
    config.write_text(yaml.safe_dump({"sampling": SAMPLING}))
    command = [
        sys.executable,
        "-m",
        "training.sampler.server",
        "--model",
        str(tiny_folder()),
        "--config",
        str(config),
    ]
    environment = {**os.environ, "DESKHAND_POLICY_TOKEN": TOKEN}
    process = subprocess.Popen([*command, "--port-file", str(port_file)], env=environment)
    try:
        yield f"http://127.0.0.1:{_port(port_file, process)}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def experiment(machine, policy_url) -> Experiment:  # noqa: F811
    found = make_experiment(config={"desktops": DESKTOPS, "sampling": SAMPLING})
    Attempt.objects.create(
        experiment=found,
        number=1,
        status=AttemptStatus.RUNNING,
        policy_url=policy_url,
        policy_token=TOKEN,
    )
    return found


@pytest.fixture
def parent(experiment) -> Trajectory:
    """Three turns of the policy with a snapshot before each."""
    request = GroupSpec(task=make_task(), size=1, purpose=Purpose.TRAIN)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment, attempt=1)
    return run_all(group).trajectories.get()


def test_a_branch_continues_the_very_tokens_of_its_parent(parent):
    assert (parent.status, parent.num_turns, parent.error) == ("truncated", 3, "")
    turn = branches.BranchRequest(turn=2, size=2, temperature=1.3)
    group = run_all(branches.branch_trajectory(trajectory=parent, request=turn))
    before = trajectory_of(parent).turns
    assert parent.fingerprint == before[0].completion.fingerprint != ""
    for member in group.trajectories.all():
        assert (member.status, member.error, member.source) == ("truncated", "", Source.POLICY)
        own = trajectory_of(member).turns
        assert own[:2] == before[:2]
        assert own[2].observation == before[2].observation
        # The context in front of the completion is as long as it was: the server itself compared the rest.
        assert own[2].completion.num_prompt_tokens == before[2].completion.num_prompt_tokens
        assert member.fingerprint == parent.fingerprint, "what made the tokens is stored with the ending"
        assert len(own[2].completion.behaviour_logprobs) == len(own[2].completion.token_ids)


def test_the_trainer_meets_no_branch_of_a_person(parent, experiment):
    turn = branches.BranchRequest(turn=1, size=1)
    group = run_all(branches.branch_trajectory(trajectory=parent, request=turn))
    group.refresh_from_db()
    assert group.finished_at is not None
    call = TrainerCall(Attempt.objects.get(experiment=experiment, number=1))
    answer = get_finished_groups(call, FinishedQuery(after=0))
    assert [found.group_id for found in answer.groups] == [parent.group_id]


def test_a_branch_from_the_first_turn_starts_an_empty_session(parent):
    turn = branches.BranchRequest(turn=0, size=1)
    member = run_all(branches.branch_trajectory(trajectory=parent, request=turn)).trajectories.get()
    first = trajectory_of(member).turns[0]
    assert (member.num_turns, member.error) == (3, "")
    assert first.observation == trajectory_of(parent).turns[0].observation
