"""A replayed trajectory keeps the reward that it was recorded with, whatever limit the experiment has now."""

import pytest

from testing.factories import (
    make_attempt,
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_trajectory,
)
from training.contracts.config import RewardConfig, parse_config
from training.contracts.coordinator import ReplayQuery
from training.contracts.types import Task
from training.rewards import compute_reward
from webapp.trajectories.row_to_types import trajectory_of, turn_limit
from webapp.worker_door.trainer_requests.contract import TrainerCall
from webapp.worker_door.trainer_requests.rollouts import get_replay

pytestmark = pytest.mark.django_db
SLIME = {"preset": "slime-osworld.v1", "alpha": 0.3}


def config_of(max_turns: int) -> dict:
    return parse_config({"desktops": {"max_turns": max_turns}, "rewards": SLIME}).model_dump(mode="json")


def limited_task(max_turns: int | None):
    row = make_task()
    task = Task(task_id=row.task_id, instruction=row.instruction, max_turns=max_turns)
    row.spec = task.model_dump(mode="json")
    row.save()
    return row


def replayed(entry, experiment):
    task_id = entry.trajectory.task.task_id
    (found,) = get_replay(TrainerCall(make_attempt(experiment)), ReplayQuery(task_id=task_id)).entries
    return found.trajectory


def test_a_15_turn_rollout_keeps_its_reward_in_an_experiment_of_8_turns():
    task = limited_task(None)
    recording = make_experiment(config=config_of(15))
    group = make_group(experiment=recording, task=task)
    row = make_trajectory(group=group, turns=12, reward=0.5)
    recorded = compute_reward(trajectory_of(row).turns, 0.5, RewardConfig(**SLIME), max_turns=15)
    entry = make_replay_entry(trajectory=row, verdict="gold")
    now = make_experiment(
        team=recording.team, config=config_of(8) | {"tasks": {"task_set": task.task_set.name}}
    )
    again = replayed(entry, now)
    assert (again.reward, again.terms) == (recorded.reward, recorded.terms)


@pytest.mark.parametrize(
    ("of_the_task", "of_the_experiment", "of_the_group", "limit"),
    [(6, 15, {}, 6), (None, 15, {}, 15), (None, None, {"max_turns": 20}, 20), (None, None, {}, 8)],
)
def test_the_limit_is_the_tasks_or_the_recordings(of_the_task, of_the_experiment, of_the_group, limit):
    experiment = make_experiment(config=config_of(of_the_experiment)) if of_the_experiment else None
    group = make_group(experiment=experiment, task=limited_task(of_the_task), desktops=of_the_group)
    assert turn_limit(make_trajectory(group=group)) == limit
