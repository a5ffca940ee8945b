"""Plain values for tests of pure functions: turns, trajectories, groups."""

from __future__ import annotations

from collections.abc import Sequence

from training.contracts.types import (
    Completion,
    Group,
    Observation,
    Purpose,
    RewardTerm,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)


def make_task(task_id: str = "menu-1", *, family: str = "menu", split: str = "train") -> Task:
    return Task(task_id=task_id, instruction="Open the menu", family=family, split=split, screen=(128, 96))


def make_turn(
    index: int = 0, tokens: Sequence[int] = (7, 8), *, fingerprint: str = "", **changes: object
) -> Turn:
    """A sampled turn without a screenshot; logprob -0.5 per token."""
    completion = Completion(
        text="x",
        token_ids=tuple(tokens),
        behaviour_logprobs=(-0.5,) * len(tokens),
        policy_version=3,
        fingerprint=fingerprint,
    )
    values = {
        "observation": Observation(sha256="", width=128, height=96, text="go"),
        "completion": completion,
    }
    return Turn(index=index, **(values | changes))


def make_trajectory(trajectory_id: int = 1, reward: float | None = 0.0, **changes: object) -> Trajectory:
    """A finished trajectory of one turn whose score is its reward."""
    values = {
        "group_id": 1,
        "task": make_task(),
        "status": TrajectoryStatus.TERMINATED,
        "turns": (make_turn(),),
        "score": reward,
        "reward": reward,
        "terms": (RewardTerm(name="task_score.v1", value=reward or 0, weight=1, contribution=reward or 0),),
    }
    return Trajectory(trajectory_id=trajectory_id, **(values | changes))


def make_group(rewards: Sequence[float | None], *, group_id: int = 1, task: Task | None = None) -> Group:
    """A group with these rewards; None = errored."""
    task = task or make_task()
    members = []
    for place, reward in enumerate(rewards):
        number = 10 * group_id + place
        if reward is None:
            members.append(
                make_trajectory(number, None, status=TrajectoryStatus.ERRORED, terms=(), task=task)
            )
        else:
            members.append(make_trajectory(number, reward, task=task))
    placed = tuple(member.model_copy(update={"group_id": group_id}) for member in members)
    return Group(group_id=group_id, task=task, purpose=Purpose.TRAIN, trajectories=placed)
