"""What people ask of experiments: queue, cancel, pause, resume, another place in the queue."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import stages_of
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.installation_limits import require_allowed
from webapp.experiments.models import (
    Experiment,
    ExperimentStatus,
    Stage,
    SweepArm,
)
from webapp.experiments.pinned_models import with_pinned_models
from webapp.experiments.pinned_tasks import with_pinned_tasks
from webapp.experiments.services.statuses import change_status, publish_status
from webapp.live.event_publishing import publish


@transaction.atomic
def queue_experiment(
    *,
    team: Team,
    owner: User | None,
    name: str,
    config: ExperimentConfig,
    preset: str = "",
    priority: int = 0,
    note: str = "",
    origin: Experiment | SweepArm | None = None,
) -> Experiment:
    """Add an experiment at the end of the queue. Raises ConfigError for what the installation forbids.

    `origin`: the experiment that it was cloned from, or the arm of a sweep that it is a seed of. A seed
    leaves no row in the audit log: the launch of the sweep is there.
    """
    config = with_pinned_models(config, team)
    require_allowed(config, team)
    config = with_pinned_tasks(config, team)
    last = Experiment.objects.aggregate(last=Max("queue_order"))["last"] or 0
    experiment = Experiment.objects.create(
        team=team,
        owner=owner,
        name=name,
        preset=preset,
        config=config.model_dump(mode="json"),
        priority=priority,
        note=note,
        cloned_from=origin if isinstance(origin, Experiment) else None,
        arm=origin if isinstance(origin, SweepArm) else None,
        queue_order=last + 1,
        message="Waiting for a free gpu worker.",
    )
    Stage.objects.bulk_create(
        Stage(experiment=experiment, name=stage, position=position)
        for position, stage in enumerate(stages_of(config))
    )
    if not isinstance(origin, SweepArm):
        _record(AuditAction.LAUNCHED, experiment, owner, name=name, preset=preset)
    publish_status(experiment.pk, ExperimentStatus.QUEUED, experiment.message)
    return experiment


def _record(action: AuditAction, experiment: Experiment, user: User | None, **detail: object) -> None:
    log_action(
        action, person=user, team=experiment.team_id, kind="experiment", object_id=experiment.pk, **detail
    )


WAITING = {ExperimentStatus.QUEUED, ExperimentStatus.PAUSED}
"""No gpu worker holds it: a cancel takes effect at once."""


# --- what people ask for -----------------------------------------------------------------------------


@transaction.atomic
def request_cancel(*, experiment: Experiment, user: User | None = None) -> bool:
    """Stop it: at once when it waits, at the next safe point when it runs."""
    by = f" by {user}" if user else ""
    done = change_status(
        experiment.pk, ExperimentStatus.CANCELLED, sources=WAITING, message=f"Cancelled{by} while waiting."
    ) or change_status(experiment.pk, ExperimentStatus.CANCELLING, message=f"Cancel requested{by}.")
    return _recorded(done, AuditAction.CANCELLED, experiment, user)


@transaction.atomic
def undo_cancel(*, experiment: Experiment, former: str, user: User | None = None) -> bool:
    """Let one that was cancelled while it waited wait again, as `former` (queued or paused)."""
    to = ExperimentStatus(former)
    if to not in WAITING:
        return False
    by = f" by {user}" if user else ""
    done = change_status(
        experiment.pk, to, sources={ExperimentStatus.CANCELLED}, message=f"Cancel taken back{by}.",
        ended_at=None, dispatched_at=None,
    )  # fmt: skip
    return _recorded(done, AuditAction.CANCEL_UNDONE, experiment, user)


@transaction.atomic
def request_pause(*, experiment: Experiment, user: User | None = None, reason: str = "") -> bool:
    """Finish the step, save a checkpoint, give the gpu worker back; `reason` when no person asked for it."""
    by = f" by {user}" if user else ""
    done = change_status(
        experiment.pk,
        ExperimentStatus.PAUSED,
        sources={ExperimentStatus.QUEUED},
        message=f"Paused{by} before it started.",
    ) or change_status(
        experiment.pk,
        ExperimentStatus.PAUSING,
        message=reason or f"Pause requested{by}: finishing the step and saving a checkpoint.",
    )
    return _recorded(done, AuditAction.PAUSED, experiment, user)


@transaction.atomic
def resume_experiment(*, experiment: Experiment, user: User | None = None) -> bool:
    """Queue a paused or failed experiment again; it goes on from its last checkpoint. Samples never run."""
    if experiment.is_sample:
        return False
    by = f" by {user}" if user else ""
    done = change_status(
        experiment.pk,
        ExperimentStatus.QUEUED,
        sources={ExperimentStatus.PAUSED, ExperimentStatus.FAILED},
        message=f"Resumed{by}: waiting for a free gpu worker.",
        ended_at=None,
        dispatched_at=None,
    )
    return _recorded(done, AuditAction.RESUMED, experiment, user)


def _recorded(is_done: bool, action: AuditAction, experiment: Experiment, user: User | None) -> bool:
    """`is_done`; when it is, the audit log says so."""
    if is_done:
        _record(action, experiment, user)
    return is_done


@transaction.atomic
def set_priority(*, experiment: Experiment, priority: int, user: User | None = None) -> None:
    """Higher runs first."""
    Experiment.objects.filter(pk=experiment.pk).update(priority=priority)
    _record(AuditAction.REORDERED, experiment, user, priority=priority)
    publish("queue", "queue.reordered", {"experiment": experiment.pk})


@transaction.atomic
def move_in_queue(*, experiment: Experiment, before: Experiment | None, user: User | None = None) -> None:
    """Put it directly before another waiting experiment, or at the end (before=None)."""
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED).exclude(pk=experiment.pk)
    if before is None:
        order = (waiting.aggregate(last=Max("queue_order"))["last"] or 0) + 1
    else:
        behind = before.queue_order
        ahead = waiting.filter(queue_order__lt=behind).aggregate(last=Max("queue_order"))["last"]
        order = behind - 1 if ahead is None else (ahead + behind) / 2
        Experiment.objects.filter(pk=experiment.pk).update(priority=before.priority)
    Experiment.objects.filter(pk=experiment.pk).update(queue_order=order)
    _record(AuditAction.REORDERED, experiment, user, before=before.pk if before else "the end")
    publish("queue", "queue.reordered", {"experiment": experiment.pk})
