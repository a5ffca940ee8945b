"""Groups of trajectories: asked for, and called off."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from training.contracts.config import DesktopConfig
from training.contracts.types import FINAL_STATUSES, Purpose, Source, TrajectoryStatus
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Group, Snapshot, Trajectory
from webapp.trajectories.services.announcements import announce_work
from webapp.trajectories.services.branch_turns import copy_parents_turns
from webapp.trajectories.services.trajectories import end_trajectory


@dataclass(frozen=True, kw_only=True)
class GroupSpec:
    """What to sample: `size` trajectories of `task`."""

    task: TaskRecord
    size: int
    purpose: Purpose
    source: Source = Source.POLICY
    step: int = 0
    temperature: float = 1.0
    policy_version: int | None = None
    snapshot: Snapshot | None = None
    """Of a branch: the state in which its desktops start."""
    redone: tuple[Trajectory, int] | None = None
    """Of a branch without one: the trajectory whose actions before this turn are done again."""
    desktops: DesktopConfig | None = None
    """Where they run when there is no experiment to say so; None: the defaults."""
    reads_texts: bool = False
    """Without an experiment: tree and terminal are recorded with each turn."""

    def lineage(self) -> dict[str, Any]:
        """Columns of the group that tell whose branch it is."""
        if self.redone is not None:
            return {"parent": self.redone[0], "branch_turn": self.redone[1]}
        if self.snapshot is None:
            return {}
        return {
            "parent_id": self.snapshot.trajectory_id,
            "branch_turn": self.snapshot.turn,
            "snapshot": self.snapshot,
        }


@transaction.atomic
def create_group(
    *,
    request: GroupSpec,
    team_id: int,
    experiment: Experiment | None = None,
    attempt: int = 0,
    key: str = "",
) -> Group:
    """Queue the trajectories of a group. `key`: of the request; the group that it made before is answered."""
    if key and (known := Group.objects.filter(request_key=key).first()) is not None:
        return known
    shared = {
        "team_id": team_id,
        "experiment": experiment,
        "task": request.task,
        "purpose": request.purpose,
        "source": request.source,
        "step": request.step,
    }
    group = Group.objects.create(
        **shared,
        **request.lineage(),
        attempt=attempt,
        size=request.size,
        temperature=request.temperature,
        desktops=request.desktops.model_dump(mode="json") if request.desktops else {},
        reads_texts=request.reads_texts,
        request_key=key or None,
    )
    members = Trajectory.objects.bulk_create(
        Trajectory(
            **shared,
            group=group,
            member=member,
            family=request.task.family,
            policy_version=request.policy_version,
            host=request.snapshot.host if request.snapshot else "",
        )
        for member in range(request.size)
    )
    for member in members:
        copy_parents_turns(member)
    if experiment:
        publish(
            experiment_stream(experiment.pk),
            "group.created",
            {
                "group": group.pk,
                "task": request.task.task_id,
                "size": request.size,
                "purpose": request.purpose,
            },
        )
    transaction.on_commit(announce_work)
    return group


def cancel_group(*, group: Group) -> None:
    """Stop a group: waiting members at once, running ones at their next turn.

    One transaction per member: holding several trajectories' streams together with the experiment's
    could deadlock with a worker that is recording a turn.
    """
    Group.objects.filter(pk=group.pk).update(is_cancelled=True)
    for trajectory in group.trajectories.exclude(status__in=FINAL_STATUSES):
        end_trajectory(trajectory_id=trajectory.pk, status=TrajectoryStatus.CANCELLED)


def cancel_groups_of(*, experiment_id: int, before_attempt: int | None = None) -> int:
    """Cancel the unfinished groups of an experiment (of earlier attempts only, when given)."""
    groups = Group.objects.filter(experiment_id=experiment_id, finished_at=None, is_cancelled=False)
    if before_attempt is not None:  # people's branches go on with the next attempt's policy
        groups = groups.filter(attempt__lt=before_attempt).exclude(purpose=Purpose.BRANCH, attempt=0)
    unfinished = list(groups)
    for group in unfinished:
        cancel_group(group=group)
    return len(unfinished)
