"""Deleting experiments: what goes, what stays, and why one cannot be deleted now.

What people judged outlives the run that it came from: one whose replay entry has a verdict, and
every demonstration, stays together with its group: its advantage means something beside its siblings only.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from training.contracts.types import Purpose
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import CheckpointExport, Experiment, ExperimentStatus, ExportStatus
from webapp.experiments.queries.checkpoints import paths_in_use
from webapp.fleet.models import Worker
from webapp.lib.copies.place import copies_place
from webapp.live.event_publishing import publish
from webapp.replay.models import ReplayEntry, Verdict
from webapp.trajectories.models import Group, Trajectory


class DeletionRefused(Exception):
    """Raised when an experiment cannot be deleted now; the message says why and what to do."""


@dataclass(frozen=True)
class Deletion:
    """What deleting one experiment means, in numbers."""

    experiment: Experiment
    refusal: str
    """Why it cannot be deleted now; "" when it can."""
    num_trajectories: int
    """That go, with their turns."""
    num_inbox: int
    """Replay entries without a verdict, that go with them."""
    num_metrics: int
    num_evaluations: int
    num_checkpoints: int
    num_kept_groups: int
    num_kept_trajectories: int
    num_kept_entries: int


def plan_deletion(experiment: Experiment) -> Deletion:
    """Count what would go and what would stay."""
    kept = Trajectory.objects.filter(group__in=_kept_groups(experiment))
    entries = ReplayEntry.objects.filter(trajectory__experiment=experiment)
    num_kept, num_kept_entries = kept.count(), entries.filter(trajectory__in=kept).count()
    return Deletion(
        experiment=experiment,
        refusal=_refusal(experiment),
        num_trajectories=experiment.trajectories.count() - num_kept,
        num_inbox=entries.count() - num_kept_entries,
        num_metrics=experiment.metrics.count(),
        num_evaluations=experiment.evaluations.count(),
        num_checkpoints=experiment.checkpoints.filter(deleted_at=None).count(),
        num_kept_groups=_kept_groups(experiment).count(),
        num_kept_trajectories=num_kept,
        num_kept_entries=num_kept_entries,
    )


def delete_experiment(*, experiment: Experiment, user: User) -> None:
    """Delete it with everything that `plan_deletion` says goes. Raises DeletionRefused."""
    with transaction.atomic():
        locked = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if refusal := _refusal(locked):
            raise DeletionRefused(refusal)
        folders = _folders(locked)
        copies = _copies(locked)
        _set_free(locked)
        log_action(
            AuditAction.DELETED, person=user, team=locked.team_id, kind="experiment", object_id=locked.pk,
            name=locked.name,
        )  # fmt: skip
        locked.delete()
        publish("queue", "experiment.deleted", {"experiment": experiment.pk})
        transaction.on_commit(lambda: _remove(folders, copies))


def _refusal(experiment: Experiment) -> str:
    status = ExperimentStatus(experiment.status)
    if not status.is_final():
        return f"it is {status}; cancel it first"
    if experiment.arm_id:
        return "it is a run of a sweep, whose figures need it"
    if num := experiment.trajectories.filter(ended_at=None).count():
        return f"{num} of its trajectories still run; wait until they have ended"
    if paths_in_use(experiment.pk):
        return "an evaluation, an export or a waiting experiment needs one of its checkpoints"
    if CheckpointExport.objects.filter(checkpoint__experiment=experiment, status__in=_WRITTEN).exists():
        return "exports of its checkpoints lie on a host; remove them on its tab Checkpoints first"
    return ""


_WRITTEN = (ExportStatus.FINISHED, ExportStatus.REMOVING)
_JUDGED = [verdict for verdict in Verdict if verdict != Verdict.INBOX]


def _kept_groups(experiment: Experiment) -> QuerySet[Group]:
    judged = Trajectory.objects.filter(experiment=experiment, replay_entries__verdict__in=_JUDGED)
    kept = Q(pk__in=judged.values("group")) | Q(purpose=Purpose.DEMONSTRATION)
    return Group.objects.filter(kept, experiment=experiment)


def _set_free(experiment: Experiment) -> None:
    """Let what stays belong to no experiment; groups then hold their desktops' config themselves."""
    groups = list(_kept_groups(experiment).values_list("pk", flat=True))
    desktops = experiment.settings.desktops.model_dump(mode="json")
    Trajectory.objects.filter(group__in=groups).update(experiment=None)
    Group.objects.filter(pk__in=groups).update(experiment=None, desktops=desktops)


def _folders(experiment: Experiment) -> list[Path]:
    """Its own folders on this machine: logs, and checkpoints wherever the config put them.

    A path that was reported is followed to where it really leads; none of a joined host is of this machine.
    """
    own = (Path(settings.EXPERIMENTS_DIR) / str(experiment.pk)).resolve()
    joined = Worker.objects.filter(is_joined=True).values("name")
    if experiment.attempts.filter(worker_name__in=joined).exists():
        return [own]
    allowed = [own, *(Path(folder).resolve() for folder in settings.CHECKPOINT_DIRS)]
    saved = [Path(path).resolve() for path in experiment.checkpoints.values_list("path", flat=True)]
    return [own, *(path for path in saved if any(folder in path.parents for folder in allowed))]


def _copies(experiment: Experiment) -> list[str]:
    """Where copies of its checkpoints and exports lie in the place of copies."""
    exports = CheckpointExport.objects.filter(checkpoint__experiment=experiment).exclude(copy_sha256="")
    checkpoints = experiment.checkpoints.exclude(copy_sha256="")
    return [*(row.copy_prefix for row in checkpoints), *(row.copy_prefix for row in exports)]


def _remove(folders: list[Path], copies: list[str]) -> None:
    if (place := copies_place()) is not None:
        for prefix in copies:
            place.remove(prefix)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
