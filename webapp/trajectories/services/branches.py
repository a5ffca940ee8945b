"""Branches: continue a trajectory from the state that its desktop had before one of its turns.

A branch is a group of its own purpose. Its first turns are the parent's, shown and never run again; its
desktops wake up from the parent's snapshot. Nothing is written unless everything that is needed is there.
"""

import math
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.fleet.queries.env_capacity import hosts_at_work
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.branches import BranchRefused, continuation, root_of, usable_snapshot
from webapp.trajectories.services.announcements import stream_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.services.trajectories import end_trajectory

MAX_SIZE = 16
MAX_TEMPERATURE = 2.0
HOST_GONE_AFTER = timedelta(seconds=60)
"""A branch waits so long for a worker of the machine that keeps its snapshot."""


@dataclass(frozen=True, kw_only=True)
class BranchRequest:
    turn: int
    """The first turn that is taken anew, 0-based."""
    size: int
    """Continuations, 1 to MAX_SIZE."""
    temperature: float = 1.0
    source: Source = Source.POLICY


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


def _policy_version(parent: Trajectory, source: Source) -> int | None:
    return parent.experiment.policy_version if parent.experiment and source == Source.POLICY else None


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
