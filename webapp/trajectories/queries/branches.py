"""Where a trajectory can be continued, by whom, and the words that its branches got."""

from dataclasses import dataclass
from typing import Any

from training.contracts.types import Source
from webapp.experiments.models import Attempt, AttemptStatus
from webapp.fleet.queries.env_capacity import hosts_at_work
from webapp.trajectories.models import Snapshot, SnapshotStatus, Trajectory, TurnRecord
from webapp.trajectories.queries.snapshots import snapshots_of

DESKTOP_WAS_USED = "Somebody else used this desktop since your last action."


class BranchRefused(Exception):
    """Raised when there can be no such branch; `field` is the part of the request that is to blame."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Continuation:
    """Who could go on, and why not."""

    source: Source
    problem: str = ""
    """"" when it can."""


def usable_snapshot(trajectory: Trajectory, turn: int) -> Snapshot:
    """The snapshot before a turn, if a branch can start from it now. Raises BranchRefused."""
    kept = snapshots_of(trajectory)
    snapshot = kept.get(turn)
    if snapshot is None:
        there = [str(t + 1) for t, row in kept.items() if row.status == SnapshotStatus.KEPT]
        some = f"there are some before turn {', '.join(there)}" if there else "this trajectory has none"
        raise BranchRefused("turn", f"No snapshot was kept before turn {turn + 1}; {some}.")
    if snapshot.status != SnapshotStatus.KEPT:
        message = f"The snapshot before turn {turn + 1} is gone; machine {snapshot.host} dropped it."
        raise BranchRefused("turn", message)
    if snapshot.host not in hosts_at_work(draining_too=True):
        message = f"Machine {snapshot.host}, which keeps the snapshot, has no env worker online."
        raise BranchRefused("turn", message)
    return snapshot


def redoable(trajectory: Trajectory, turn: int) -> None:
    """Whether its turns before this one can be done again. Raises BranchRefused."""
    before = trajectory.turns.filter(index__lte=turn)
    if before.count() != turn + 1:
        raise BranchRefused("turn", f"It has no turn {turn + 1}, so its screen there is not known.")
    if before.filter(frame="").exists():
        raise BranchRefused("turn", "A screen before that turn was not kept: nothing could be compared.")
    if not _has_policy(trajectory):
        raise BranchRefused("source", NO_POLICY)


def lasted_s(trajectory: Trajectory) -> float:
    """Seconds on its desktop; 0 until it has ended: what a continuation counts as."""
    if trajectory.started_at is None or trajectory.ended_at is None:
        return 0.0
    return max(0.0, (trajectory.ended_at - trajectory.started_at).total_seconds())


def candidates(trajectory: Trajectory) -> list[Continuation]:
    """Who might go on from some turn of a trajectory; the turn itself is looked at when one is asked for."""
    found = [Continuation(Source.POLICY, "" if _has_policy(trajectory) else NO_POLICY)]
    return [*found, Continuation(Source.ORACLE)] if _oracle_actions(trajectory) else found


def continuation(snapshot: Snapshot, source: Source) -> Continuation:
    """Whether `source` can go on from a snapshot, and if not, why."""
    if source == Source.POLICY:
        return Continuation(source, "" if _has_policy(snapshot.trajectory) else NO_POLICY)
    if source == Source.ORACLE:
        return Continuation(source, _oracle_problem(snapshot))
    return Continuation(source, f"The policy or the task's oracle continues a branch, not {source}.")


NO_POLICY = (
    "The policy server of this trajectory's experiment does not run; resume the experiment, "
    "or start one from its checkpoint."
)


def _has_policy(trajectory: Trajectory) -> bool:
    running = Attempt.objects.filter(experiment=trajectory.experiment_id, status=AttemptStatus.RUNNING)
    return trajectory.experiment_id is not None and running.exclude(policy_url="").exists()


def _oracle_problem(snapshot: Snapshot) -> str:
    actions = _oracle_actions(snapshot.trajectory)
    if not actions:
        return "This task has no oracle."
    before = snapshot.trajectory.turns.filter(index__lt=snapshot.turn)
    if before.exclude(source=Source.ORACLE).exists():
        return "The oracle knows the way from the start only: turns before this one were not its own."
    if snapshot.turn >= len(actions):
        return "The oracle has done everything that it knows before this turn."
    return ""


def _oracle_actions(trajectory: Trajectory) -> list[Any]:
    return list((trajectory.task.spec.get("oracle") or {}).get("actions") or [])


def root_of(trajectory: Trajectory) -> Trajectory:
    """The trajectory that is no branch, from which this one comes."""
    while (parent := trajectory.group.parent) is not None:
        trajectory = parent
    return trajectory


def first_text(branch: Trajectory) -> str:
    """What the agent reads at the first turn of a branch: what its parent's agent read there."""
    turn, parent_id = branch.group.branch_turn, branch.group.parent_id
    instruction = str(branch.task.instruction)
    if not turn or not branch.turns.filter(completion__isnull=False).exists():
        return instruction if branch.source == Source.POLICY or not turn else ""
    then = TurnRecord.objects.filter(trajectory=parent_id, index=turn).first()
    return then.observation_text if then is not None and then.source == Source.POLICY else DESKTOP_WAS_USED
