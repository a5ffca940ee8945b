"""What people do to experiments: queue, cancel, pause, resume, reorder; name, note, tags, archive."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import stages_of
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.installation_limits import require_allowed
from webapp.experiments.models import (
    MAX_NAME,
    Experiment,
    ExperimentStatus,
    Stage,
    SweepArm,
)
from webapp.experiments.pinned_models import with_pinned_models
from webapp.experiments.pinned_tasks import with_pinned_tasks
from webapp.experiments.services.statuses import change_status, publish_status
from webapp.lib.request_values import BadValue, check_text
from webapp.lib.tags import checked_tags
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


MAX_NOTE = 4000
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


@transaction.atomic
def edit_experiment(
    *,
    experiment: Experiment,
    user: User,
    name: str | None = None,
    note: str | None = None,
    tags: list[str] | None = None,
) -> None:
    """Change name, note or tags; None leaves one as it is. Raises BadValue."""
    locked = Experiment.objects.select_for_update().defer("config").get(pk=experiment.pk)
    wanted: dict[str, object] = {}
    if name is not None:
        wanted["name"] = _checked(name, "name", MAX_NAME)
        if not wanted["name"]:
            raise BadValue("name", "an experiment needs a name")
    if note is not None:
        wanted["note"] = _checked(note, "note", MAX_NOTE)
    if tags is not None:
        wanted["tags"] = checked_tags(tags)
    changed = [field for field, value in wanted.items() if getattr(locked, field) != value]
    if not changed:
        return
    for field in changed:
        setattr(locked, field, wanted[field])
    locked.save(update_fields=changed)
    _record(AuditAction.EDITED, locked, user, changed=changed, name=locked.name)
    _publish(locked)


def add_tag(*, experiments: list[Experiment], tag: str, user: User) -> int:
    """Put `tag` on each; how many did not have it. Raises BadValue, and then none has it."""
    added = checked_tags([tag])
    if not added:
        raise BadValue("tag", "type a tag first")
    lacking = [row for row in experiments if added[0] not in row.tags]
    with transaction.atomic():
        for row in lacking:
            edit_experiment(experiment=row, user=user, tags=[*row.tags, *added])
    return len(lacking)


def archive_experiments(*, experiments: list[Experiment], on: bool, user: User) -> int:
    """Take them out of the list, or put them back; how many changed. Unfinished and sweep runs stay."""
    rows = [row for row in experiments if (row.archived_at is None) is on]
    if on:
        rows = [row for row in rows if ExperimentStatus(row.status).is_final() and not row.arm_id]
    with transaction.atomic():
        at = timezone.now() if on else None
        Experiment.objects.filter(pk__in=[row.pk for row in rows]).update(archived_at=at)
        for row in rows:
            _record(AuditAction.EDITED, row, user, archived=on)
            _publish(row)
    return len(rows)


def _checked(text: str, field: str, limit: int) -> str:
    check_text(text, field)
    if len(text) > limit:
        raise BadValue(field, f"at most {limit} characters, this has {len(text)}")
    return text.strip()


def _publish(experiment: Experiment) -> None:
    publish_status(experiment.pk, ExperimentStatus(experiment.status), experiment.message)
