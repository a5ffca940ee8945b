"""What the samples show beside the recorded run: a branch, a take-over, an inbox, and a run that failed.

All is made of turns that the recording has: no screen is made up.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.stage_names import StageName
from training.contracts.types import Purpose, Source
from webapp.experiments.models import AlarmStatus, Experiment, ExperimentStatus, StageStatus
from webapp.replay.services.inbox import offer_to_inbox
from webapp.trajectories.models import Group, Trajectory, TurnRecord

LATER = timedelta(minutes=2)
NUM_INBOX = 8
FAILED = "Sample: First desk, ten times the learning rate"
FAILED_NOTE = "Made of the first steps of the recorded run beside it, to show what a failure looks like."
FAILED_STEP = 2
TIMES = 10
"""Its learning rate against the recorded one."""
GRAD_NORM, LIMIT = 812.4, 50.0
MESSAGE = (
    f"The loss was not finite at step {FAILED_STEP}: lower optimiser.learning_rate, or launch a clone of it."
)
LOG = """INFO This is the log of a sample: its failure was written, not met.
INFO step 1 done
WARNING grad_norm_explosion at step 2: 812.4 is above 50
ERROR the loss was not finite at step 2
"""


def add_stories(experiment: Experiment) -> None:
    """A branch, a take-over, and the inbox."""
    trained = Trajectory.objects.filter(experiment=experiment, purpose=Purpose.TRAIN)
    rows = list(trained.select_related("group", "task").prefetch_related("turns").order_by("pk"))
    branch_of(rows)
    take_over_of(rows)
    offered = Trajectory.objects.filter(experiment=experiment).order_by("pk")
    admitted: list[Any] = []
    for row in _told_apart(offered):
        if len(admitted) == NUM_INBOX:
            break
        if (entry := offer_to_inbox(trajectory=row)) is not None:
            admitted.append(entry)


def _told_apart(rows: Iterable[Trajectory]) -> list[Trajectory]:
    """Branch and take-over first, then one of each task in turn."""
    first, others, seen = [], [], set()
    for row in rows:
        if row.purpose == Purpose.BRANCH or row.source == Source.HUMAN:
            first.append(row)
        elif row.purpose == Purpose.TRAIN:
            others.append((row.task_id in seen, row.pk, row))
            seen.add(row.task_id)
    return [*first, *(row for *_, row in sorted(others, key=lambda found: found[:2]))]


def failed_of(run: dict[str, Any]) -> dict[str, Any]:
    """A recorded run that ended with an error at its second step."""
    last = FAILED_STEP - 1
    config = run["experiment"]["config"]
    optimiser = {**config["optimiser"], "learning_rate": config["optimiser"]["learning_rate"] * TIMES}
    alarm = {
        **{"name": "grad_norm_explosion", "status": AlarmStatus.ACTIVE, "severity": "critical"},
        **{"step": FAILED_STEP, "since_step": FAILED_STEP, "value": GRAD_NORM, "limit": LIMIT},
        **{"message": f"The gradient's norm was {GRAD_NORM}.", "remedy": "Lower optimiser.learning_rate."},
    }
    return {
        "experiment": {
            **run["experiment"],
            **{"name": FAILED, "note": FAILED_NOTE, "status": ExperimentStatus.FAILED, "message": MESSAGE},
            **{"stage": "grpo", "step": last, "config": {**config, "optimiser": optimiser}},
            "policy_version": run["experiment"]["policy_version"] - run["experiment"]["step"] + last,
        },
        "stages": [_stage_of_failure(stage) for stage in run["stages"]],
        "metrics": [point for point in run["metrics"] if point[1] <= last],
        "evaluations": [found for found in run["evaluations"] if found["evaluation"]["step"] == 0],
        "groups": [
            {**found, "members": [row for row in found["members"] if not _is_persons(row)]}
            for found in run["groups"]
            if found["group"]["purpose"] == Purpose.TRAIN and found["group"]["step"] <= last
        ],
        "inbox": [],
        "alarms": [alarm],
        "incidents": [{"kind": "failed", "message": MESSAGE}],
        "log": LOG,
    }


def _stage_of_failure(stage: dict[str, Any]) -> dict[str, Any]:
    if stage["name"] == StageName.GRPO:
        return {**stage, "done": FAILED_STEP - 1, "status": StageStatus.RUNNING, "ended_at": None}
    if stage["name"] == StageName.EVALUATION_AFTER:
        return {**stage, "done": 0, "status": StageStatus.PENDING, "started_at": None, "ended_at": None}
    return stage


def _is_persons(row: dict[str, Any]) -> bool:
    return bool(row["trajectory"]["source"] == Source.HUMAN)


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
    Group.objects.filter(pk=group.pk).update(created_at=_later(other))
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
    Trajectory.objects.filter(pk=copy.pk).update(created_at=copy.started_at)
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
