"""Which entries leave the buffer as a file, and the file, written while it is sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse

from training.contracts.types import Action
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.lib.media.file_streams import stream
from webapp.replay.filters import EntryFilter
from webapp.replay.formats.registry import FORMATS
from webapp.replay.formats.slime_export import CannotExport, ImageForm, action_text
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.replay.queries import entries as entry_queries
from webapp.replay.services.labels import LABEL_COLUMNS
from webapp.trajectories.models import TurnRecord

ENTRIES_AT_ONCE = 20
"""Read together, with all their turns."""


@dataclass(frozen=True, slots=True)
class ChosenEntries:
    """What an export would hold."""

    team_id: int
    labels: dict[int, dict[str, Any]]
    """Entry -> its label as it was when they were chosen."""
    refused: dict[int, str]
    """Entry -> why the format has no form for it."""


def chosen_for_export(team_id: int, chosen: EntryFilter, *, only_usable: bool) -> ChosenEntries:
    """Entries of the filter; `only_usable`: accepted and gold ones, whatever verdict it names."""
    rows = entry_queries.entry_rows(team_id)
    if only_usable:
        rows = chosen.apply_but_verdict(rows).filter(verdict__in=USABLE_VERDICTS)
    else:
        rows = chosen.apply(rows)
    labels = {row["pk"]: row for row in rows.order_by("id").values("pk", *LABEL_COLUMNS)}
    refused = left_out(list(labels))
    return ChosenEntries(team_id, {pk: label for pk, label in labels.items() if pk not in refused}, refused)


def export_response(
    export: ChosenEntries, *, user: User, form: str, images: ImageForm, said: str
) -> StreamingHttpResponse:
    """The file. `said`: the filter, for the audit log."""
    detail = {"entries": len(export.labels), "filter": said[:200]}
    log_action(AuditAction.EXPORTED, person=user, team=export.team_id, kind="entry", **detail)
    written = FORMATS[form]
    pieces = written.pieces(chosen_entries(export), images)
    response = StreamingHttpResponse(stream(pieces), content_type=written.content_type)
    response["Content-Disposition"] = f'attachment; filename="deskhand-replay{written.ending}"'
    return response


def chosen_entries(export: ChosenEntries) -> Iterator[ReplayEntry]:
    """In order, with all that a file needs. Each has the label that it had at the beginning."""
    rows = ReplayEntry.objects.select_related(
        "trajectory__task", "trajectory__group", "labelled_by", "imported_line"
    ).prefetch_related("trajectory__turns", "trajectory__process_labels")
    people = User.objects.in_bulk({label["labelled_by"] for label in export.labels.values()} - {None})
    ids = list(export.labels)
    for start in range(0, len(ids), ENTRIES_AT_ONCE):
        found = rows.in_bulk(ids[start : start + ENTRIES_AT_ONCE])
        for entry in (found[pk] for pk in ids[start : start + ENTRIES_AT_ONCE] if pk in found):
            label = export.labels[entry.pk]
            entry.labelled_by = people.get(label["labelled_by"])
            for name in ("verdict", "tags", "note", "edit"):
                setattr(entry, name, label[name])
            yield entry


def left_out(entry_ids: list[int]) -> dict[int, str]:
    """Entries with an action that the format has no form for: id -> why."""
    found: dict[int, str] = {}
    rows = TurnRecord.objects.filter(trajectory__replay_entries__in=entry_ids, action__isnull=False)
    for pk, index, action in rows.values_list("trajectory__replay_entries", "index", "action").iterator():
        try:
            action_text(Action.model_validate(action), f"entry {pk}, turn {index + 1}")
        except CannotExport as problem:
            found.setdefault(pk, str(problem))
    return found
