"""What people change of an experiment without touching what it does: name, note, tags, the archive."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import MAX_NAME, Experiment, ExperimentStatus
from webapp.experiments.services.statuses import publish_status
from webapp.lib.request_values import BadValue, check_text
from webapp.lib.tags import checked_tags

MAX_NOTE = 4000


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
    _record(locked, user, changed=changed, name=locked.name)
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


def archive(*, experiments: list[Experiment], on: bool, user: User) -> int:
    """Take them out of the list, or put them back; how many changed. Unfinished and sweep runs stay."""
    rows = [row for row in experiments if (row.archived_at is None) is on]
    if on:
        rows = [row for row in rows if ExperimentStatus(row.status).is_final() and not row.arm_id]
    with transaction.atomic():
        at = timezone.now() if on else None
        Experiment.objects.filter(pk__in=[row.pk for row in rows]).update(archived_at=at)
        for row in rows:
            _record(row, user, archived=on)
            _publish(row)
    return len(rows)


def _checked(text: str, field: str, limit: int) -> str:
    check_text(text, field)
    if len(text) > limit:
        raise BadValue(field, f"at most {limit} characters, this has {len(text)}")
    return text.strip()


def _record(experiment: Experiment, user: User, **detail: object) -> None:
    team, pk = experiment.team_id, experiment.pk
    log_action(AuditAction.EDITED, person=user, team=team, kind="experiment", object_id=pk, **detail)


def _publish(experiment: Experiment) -> None:
    publish_status(experiment.pk, ExperimentStatus(experiment.status), experiment.message)
