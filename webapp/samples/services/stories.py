"""A branch and a take-over, made of turns that the recording has: no screen is made up."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import Purpose, Source
from webapp.trajectories.models import Group, Trajectory, TurnRecord

LATER = timedelta(minutes=2)


def branch_of(rows: Sequence[Trajectory]) -> Trajectory:
    """A failure, continued as its sibling went on that solved the task.

    Both began on the same screen. The branch leaves where their actions first differ.
    """
    pairs = [
        (failed, solved)
        for failed in rows
        for solved in rows
        if failed.group_id == solved.group_id
        and not _is_solved(failed)
        and _is_solved(solved)
        and _first_frame(failed) == _first_frame(solved)
    ]
    parent, other = max(pairs, key=lambda pair: _first_difference(*pair))
    turn = _first_difference(parent, other)
    group = Group.objects.create(
        team=parent.team, experiment=parent.experiment, attempt=1, task=parent.task, purpose=Purpose.BRANCH,
        step=parent.step, size=1, temperature=parent.group.temperature, num_final=1, num_scored=1,
        reward_mean=other.reward, parent=parent, branch_turn=turn, finished_at=_later(other),
    )  # fmt: skip
    return _copied(other, group, purpose=Purpose.BRANCH, member=0)


def take_over_of(rows: Sequence[Trajectory]) -> Trajectory:
    """A solved one whose last turns were a person's; its place in the group is the recorded one's."""
    solved = max((row for row in rows if _is_solved(row)), key=lambda row: (row.num_turns, -row.pk))
    taken = _copied(solved, solved.group, source=Source.HUMAN, member=solved.member)
    last = list(taken.turns.order_by("index"))[max(1, solved.num_turns - 2) :]
    TurnRecord.objects.filter(pk__in=[turn.pk for turn in last]).update(
        source=Source.HUMAN, completion=None, thought="", dialect="", spent_ms=None
    )
    return taken


def _copied(row: Trajectory, group: Group, **changed: object) -> Trajectory:
    turns = list(row.turns.order_by("index"))
    copy = Trajectory.objects.get(pk=row.pk)
    copy.pk, copy.group, copy.advantage = None, group, None
    copy._state.adding = True
    copy.started_at, copy.ended_at = _later(row), _later(row) + timedelta(seconds=20)
    for name, value in changed.items():
        setattr(copy, name, value)
    copy.save(force_insert=True)
    for turn in turns:
        turn.pk, turn.trajectory = None, copy
    TurnRecord.objects.bulk_create(turns)
    return copy


def _is_solved(row: Trajectory) -> bool:
    return (row.score or 0) >= SOLVED_SCORE and row.num_turns > 1


def _first_frame(row: Trajectory) -> str:
    return next((turn.frame for turn in row.turns.all()), "")


def _first_difference(one: Trajectory, other: Trajectory) -> int:
    """Index of the first turn in which they did something else on the same screen."""
    pairs = zip(one.turns.all(), other.turns.all(), strict=False)
    for first, second in pairs:
        if first.action != second.action or first.frame != second.frame:
            return first.index
    return min(one.num_turns, other.num_turns) - 1


def _later(row: Trajectory) -> datetime:
    assert row.ended_at is not None
    return row.ended_at + LATER
