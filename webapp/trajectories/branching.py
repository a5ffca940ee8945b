"""Branches: continue a trajectory from the state that its desktop had before one of its turns.

A branch is a group of its own purpose. Its first turns are the parent's, shown and never run again; its
desktops wake up from the parent's snapshot. Nothing is written unless everything that is needed is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import Attempt, AttemptStatus
from webapp.fleet.queries.env_capacity import hosts_at_work
from webapp.live.event_publishing import publish
from webapp.trajectories.kept_desktop_snapshots import snapshots_of
from webapp.trajectories.lifecycle import GroupSpec, create_group, end_trajectory, stream_of
from webapp.trajectories.models import Group, Snapshot, SnapshotStatus, Trajectory, TurnRecord

MAX_SIZE = 16
MAX_TEMPERATURE = 2.0
HOST_GONE_AFTER = timedelta(seconds=60)
"""A branch waits so long for a worker of the machine that keeps its snapshot."""
DESKTOP_WAS_USED = "Somebody else used this desktop since your last action."


class BranchRefused(Exception):
    """Raised when there can be no such branch; `field` is the part of the request that is to blame."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, kw_only=True)
class BranchRequest:
    """What to sample."""

    turn: int
    """The first turn that is taken anew, 0-based."""
    size: int
    """Continuations, 1 to MAX_SIZE."""
    temperature: float = 1.0
    source: Source = Source.POLICY


@dataclass(frozen=True)
class Continuation:
    """Who could go on, and why not."""

    source: Source
    problem: str = ""
    """"" when it can."""


def branch_trajectory(*, trajectory: Trajectory, request: BranchRequest, user: User | None = None) -> Group:
    """Queue the continuations. Raises BranchRefused, having written nothing."""
    if not 1 <= request.size <= MAX_SIZE:
        raise BranchRefused("size", f"A branch has 1 to {MAX_SIZE} continuations, not {request.size}.")
    if not math.isfinite(request.temperature) or not 0 < request.temperature <= MAX_TEMPERATURE:
        message = f"The temperature is above 0 and at most {MAX_TEMPERATURE:g}, not {request.temperature:g}."
        raise BranchRefused("temperature", message)
    snapshot = usable_snapshot(trajectory, request.turn)
    who = continuation(snapshot, request.source)
    if who.problem:
        raise BranchRefused("source", who.problem)
    parent = snapshot.trajectory
    with transaction.atomic():
        group = create_group(
            request=GroupSpec(
                task=parent.task,
                size=request.size,
                purpose=Purpose.BRANCH,
                source=request.source,
                step=parent.step,
                temperature=request.temperature,
                policy_version=_policy_version(parent, request.source),
                snapshot=snapshot,
                desktops=parent.desktop_config if parent.group.desktops else None,
            ),
            team_id=parent.team_id,
            experiment=parent.experiment,
        )
        log_action(
            AuditAction.BRANCHED,
            person=user,
            team=parent.team_id,
            kind="trajectory",
            object_id=parent.pk,
            turn=snapshot.turn,
            group=group.pk,
        )
        payload = {"trajectory": parent.pk, "turn": snapshot.turn, "group": group.pk}
        for trajectory_id in sorted({parent.pk, root_of(parent).pk}):
            publish(stream_of(trajectory_id), "branch.added", payload)
    return group


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


def _policy_version(parent: Trajectory, source: Source) -> int | None:
    return parent.experiment.policy_version if parent.experiment and source == Source.POLICY else None


def root_of(trajectory: Trajectory) -> Trajectory:
    """The trajectory that is no branch, from which this one comes."""
    while (parent := trajectory.group.parent) is not None:
        trajectory = parent
    return trajectory


def first_text(branch: Trajectory) -> str:
    """What the agent is told at the first turn of a branch: what its parent's agent was told there."""
    turn, parent_id = branch.group.branch_turn, branch.group.parent_id
    instruction = str(branch.task.instruction)
    if not turn or not branch.turns.filter(completion__isnull=False).exists():
        return instruction if branch.source == Source.POLICY or not turn else ""
    then = TurnRecord.objects.filter(trajectory=parent_id, index=turn).first()
    return then.observation_text if then is not None and then.source == Source.POLICY else DESKTOP_WAS_USED


def give_up_hostless() -> list[int]:
    """End branches whose machine is gone: no other has their snapshot."""
    limit = timezone.now() - HOST_GONE_AFTER
    bound = Trajectory.objects.filter(status=TrajectoryStatus.QUEUED, created_at__lt=limit).exclude(host="")
    lost = []
    for trajectory in bound.exclude(host__in=hosts_at_work(draining_too=True)):
        error = f"machine {trajectory.host}, which keeps the snapshot, has no env worker online"
        if end_trajectory(
            trajectory_id=trajectory.pk,
            status=TrajectoryStatus.ERRORED,
            error=error,
            error_kind="host_gone",
        ):
            lost.append(trajectory.pk)
    return lost
