"""Taking the samples of a team away again, with everything that they brought."""

import shutil
import time

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import ProtectedError

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import Experiment, TaskSet
from webapp.live.event_publishing import publish
from webapp.retention.queries.prunable import is_shown_by_others, shown_by
from webapp.samples.services.samples import TASK_SET
from webapp.trajectories.models import Frame, Trajectory, TurnRecord
from webapp.trajectories.services.frames import delete_unused_frames


def delete_samples(*, team: Team, user: User | None = None) -> int:
    """Runs, trajectories, entries and labels of the samples, and screens that nothing else shows; how many
    experiments went. Experiments that were cloned from them stay."""
    rows = Experiment.objects.filter(team=team, is_sample=True)
    ids = list(rows.values_list("pk", flat=True))
    if not ids:
        return 0
    shown = shown_by(TurnRecord.objects.filter(trajectory__experiment__in=ids))
    shown |= set(Trajectory.objects.filter(experiment__in=ids).values_list("final_frame", flat=True))
    with transaction.atomic():
        rows.filter(pk__in=ids).delete()
        try:
            with transaction.atomic():
                TaskSet.objects.filter(name=TASK_SET).delete()
        except ProtectedError:
            pass  # another team has samples, too, or a person ran its tasks
        log_action(AuditAction.DELETED, person=user, team=team, kind="sample", experiments=len(ids))
        for pk in ids:
            publish("queue", "experiment.deleted", {"experiment": pk})
        transaction.on_commit(lambda: _remove_files(ids, shown - {""}))
    return len(ids)


def _remove_files(ids: list[int], frames: set[str]) -> None:
    for pk in ids:
        shutil.rmtree(log_folder(pk).parent, ignore_errors=True)
    now = time.time()
    unused = [sha for sha in sorted(frames) if not is_shown_by_others(sha, ())]
    deleted = delete_unused_frames(unused, now)
    Frame.objects.filter(sha256__in=deleted).delete()
