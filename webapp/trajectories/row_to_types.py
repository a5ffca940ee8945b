"""Database rows -> `training.contracts.types` values, the form in which trajectories travel."""

from training.contracts.milestone import ReachedMilestone
from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import (
    Action,
    Completion,
    Group,
    Limit,
    Observation,
    Purpose,
    RewardTerm,
    Source,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from webapp.trajectories import models
from webapp.trajectories.queries.branches import lasted_s
from webapp.trajectories.services.group_places import members_that_count


def turn_of(row: models.TurnRecord) -> Turn:
    """One turn as a wire value."""
    return Turn(
        index=row.index,
        source=Source(row.source),
        observation=Observation(
            sha256=row.frame,
            width=row.width,
            height=row.height,
            text=row.observation_text,
            **(row.read_texts or {}),
        ),
        completion=Completion.model_validate(row.completion) if row.completion else None,
        action=Action.model_validate(row.action) if row.action else None,
        earlier_actions=tuple(Action.model_validate(action) for action in row.earlier_actions or ()),
        parse_error=row.parse_error or None,
        dialect=row.dialect,
        action_error=row.action_error or None,
        screen_changed=row.screen_changed,
        measured=MeasuredTurn.model_validate(row.measured) if row.measured is not None else None,
        unsettled=row.unsettled,
        terms=tuple(RewardTerm.model_validate(term) for term in row.terms),
        is_context=row.is_context,
    )


def trajectory_of(row: models.Trajectory) -> Trajectory:
    """One trajectory with its turns; prefetch `turns` and `task` for many.

    A screenshot that drew neither completion nor action (the context was full) is no turn.
    """
    return Trajectory(
        trajectory_id=row.pk,
        group_id=row.group_id,
        task=Task.model_validate(row.task.spec),
        source=Source(row.source),
        status=TrajectoryStatus(row.status),
        turns=tuple(turn_of(turn) for turn in row.turns.all() if turn.action or turn.completion),
        score=row.score,
        reward=row.reward,
        limit=Limit(row.limit) if row.limit else None,
        terms=tuple(RewardTerm.model_validate(term) for term in row.terms),
        milestones=tuple(ReachedMilestone.model_validate(one) for one in row.milestones),
        lasted_s=lasted_s(row),
        error=row.error,
    )


def turn_limit(row: models.Trajectory) -> int:
    """Most turns that a trajectory could have, by its task or the config that it was recorded with."""
    return Task.model_validate(row.task.spec).max_turns or row.desktop_config.max_turns


def group_of(row: models.Group) -> Group:
    """A group with the last try of each place; never one in which a person acted in the agent's stead."""
    last_tries: dict[int, models.Trajectory] = {}
    members = members_that_count(row).select_related("task").prefetch_related("turns").order_by("id")
    for member in members:
        last_tries[member.member] = member
    return Group(
        group_id=row.pk,
        task=Task.model_validate(row.task.spec),
        purpose=Purpose(row.purpose),
        step=row.step,
        trajectories=tuple(trajectory_of(last_tries[place]) for place in sorted(last_tries)),
        parent_id=row.parent_id,
        branch_turn=row.branch_turn or 0,
    )
