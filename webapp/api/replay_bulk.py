"""/replay: many entries at once, coverage, and the export as a file."""

from typing import Any, Literal

from django.core.exceptions import BadRequest
from django.http import HttpResponseBase
from ninja import Field, FilterSchema, Query, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.binary import binary_answer
from webapp.api.errors import Conflict
from webapp.lib.request_values import MAX_WHOLE
from webapp.replay.exports import chosen_for_export, export_response
from webapp.replay.filters import ALL, EntryFilter
from webapp.replay.formats.registry import FORMATS, FormatName
from webapp.replay.models import Verdict
from webapp.replay.queries import entries
from webapp.replay.services.bulk_labels import label_many
from webapp.replay.services.labels import to_settle, undo_latest

router = Router(tags=["replay"])


class Chosen(Schema):
    """The inbox's filter; everything may be left out."""

    verdict: Literal["", "inbox", "accepted", "rejected", "gold", "all"] = ""
    family: str = Field("", max_length=60)
    experiment: int | None = Field(None, ge=0, le=MAX_WHOLE)
    age: Literal["", "hour", "day", "week"] = ""
    tag: str = Field("", max_length=60)
    search: str = Field("", max_length=60)
    """Words of the task's instruction or id."""
    finding: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Id of a scanner that found something."""

    def entry_filter(self, default: str) -> EntryFilter:
        """The same as pages have it; `default`: the verdict where none is named."""
        values = self.model_dump(include={"family", "age", "tag", "search"})
        experiment = "" if self.experiment is None else str(self.experiment)
        finding = "" if self.finding is None else str(self.finding)
        verdict = self.verdict or default
        return EntryFilter(verdict=verdict, experiment=experiment, finding=finding, **values)


class BulkIn(Chosen):
    """One verdict for all entries of a filter."""

    to: Verdict
    expected: int = Field(ge=0, le=MAX_WHOLE)
    """How many entries the caller saw; 409 when they are others by now."""
    trim: bool = False
    """Accept entries with unparsable or refused turns without those; else they are held back."""


class BulkOut(Schema):
    """How many changed; at most 5,000 at once, the rest needs another call."""

    changed: int
    left_out: int
    """Entries that a review holds to settle."""
    held_back: int
    """Not accepted: turns of them were unparsable or refused."""


class UndoneOut(Schema):
    """Labels that were taken back."""

    undone: int


class CoverageCell(Schema):
    """Entries of a verdict."""

    verdict: str
    number: int


class CoverageRow(Schema):
    """Entries of a family."""

    family: str
    cells: list[CoverageCell]
    total: int


class ExportQuery(Chosen, FilterSchema):
    """Which entries, and how."""

    form: FormatName = "jsonl"
    images: Literal["base64", "sha256"] = "base64"
    """Of JSON lines; the other forms always have them inside."""
    leave_out: bool = False
    """Leave out entries that the format has no form for, instead of answering 409."""


@router.get("/stats", response=list[CoverageRow], operation_id="show_replay_stats")
def show_replay_stats(request: MemberRequest) -> Any:
    """Entries by family and verdict."""
    return entries.coverage(member(request).team_id)


@router.post("/bulk", response=BulkOut, operation_id="label_many")
def bulk(request: MemberRequest, body: BulkIn) -> Any:
    """One verdict for all entries of a filter, by default the inbox; one undo takes it back."""
    team = member(request, Role.ANNOTATOR).team
    rows = body.entry_filter(Verdict.INBOX.value).apply(entries.entry_rows(team.pk))
    if (number := rows.count()) != body.expected:
        raise Conflict(f"expected: the filter holds {number} entries by now, not {body.expected}.")
    left_out = rows.filter(pk__in=to_settle()).count()
    try:
        done = label_many(entries=rows, user=request.user, verdict=body.to, trim=body.trim)
        return {"changed": done.changed, "held_back": done.held_back, "left_out": left_out}
    except ValueError as error:
        raise BadRequest(str(error)) from error


@router.post("/undo", response=UndoneOut, operation_id="undo_latest_label")
def undo(request: MemberRequest) -> Any:
    """Take back the caller's newest label in the team, or bulk change as a whole."""
    team = member(request, Role.ANNOTATOR).team
    return {"undone": len(undo_latest(team=team, user=request.user))}


@router.get(
    "/export",
    operation_id="export_entries",
    **binary_answer(*(one.content_type for one in FORMATS.values())),
)
def export(request: MemberRequest, chosen: Query[ExportQuery]) -> HttpResponseBase:
    """Accepted and gold entries, or those of the filter, as a file."""
    team = member(request).team
    wanted = chosen.entry_filter(ALL)
    export = chosen_for_export(team.pk, wanted, only_usable=not chosen.verdict)
    if export.refused and not chosen.leave_out:
        raise Conflict("; ".join(list(export.refused.values())[:5]) + ". Ask with leave_out.")
    return export_response(
        export, user=request.user, form=chosen.form, images=chosen.images, said=str(wanted)
    )
