"""What people change of an experiment without touching what it does: name, note, tags, the archive."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.experiments.lifecycle.status_changes import publish_status
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.lib.request_values import BadValue, check_text
from webapp.lib.tags import checked_tags

MAX_NAME = 120
MAX_NOTE = 4000


@transaction.atomic
def edit_experiment(
    *, experiment: Experiment, name: str | None = None, note: str | None = None, tags: list[str] | None = None
) -> None:
    """Change name, note or tags; None leaves one as it is. Raises BadValue."""
    locked = Experiment.objects.select_for_update().defer("config").get(pk=experiment.pk)
    if name is not None:
        locked.name = _checked(name, "name", MAX_NAME)
        if not locked.name:
            raise BadValue("name", "an experiment needs a name")
    if note is not None:
        locked.note = _checked(note, "note", MAX_NOTE)
    if tags is not None:
        locked.tags = checked_tags(tags)
    locked.save(update_fields=["name", "note", "tags"])
    _publish(locked)


def add_tag(*, experiments: list[Experiment], tag: str) -> int:
    """Put `tag` on each; how many did not have it. Raises BadValue, and then none has it."""
    added = checked_tags([tag])
    if not added:
        raise BadValue("tag", "type a tag first")
    lacking = [row for row in experiments if added[0] not in row.tags]
    with transaction.atomic():
        for row in lacking:
            edit_experiment(experiment=row, tags=[*row.tags, *added])
    return len(lacking)


def archive(*, experiments: list[Experiment], on: bool) -> int:
    """Take them out of the list, or put them back; how many changed. Unfinished and sweep runs stay."""
    rows = [row for row in experiments if (row.archived_at is None) is on]
    if on:
        rows = [row for row in rows if ExperimentStatus(row.status).is_final() and not row.arm_id]
    with transaction.atomic():
        at = timezone.now() if on else None
        Experiment.objects.filter(pk__in=[row.pk for row in rows]).update(archived_at=at)
        for row in rows:
            _publish(row)
    return len(rows)


def _checked(text: str, field: str, limit: int) -> str:
    check_text(text, field)
    if len(text) > limit:
        raise BadValue(field, f"at most {limit} characters, this has {len(text)}")
    return text.strip()


def _publish(experiment: Experiment) -> None:
    publish_status(experiment.pk, ExperimentStatus(experiment.status), experiment.message)
