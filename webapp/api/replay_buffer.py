"""/replay: the entries of the replay buffer and their labels."""

from typing import Any

from django.core.exceptions import BadRequest
from ninja import Router

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.paging import page_of
from webapp.api.replay_schemas import EntryPage, EntryRow, LabelIn
from webapp.replay.access import get_entry
from webapp.replay.models import ReplayEntry, Verdict
from webapp.replay.services.labels import label_entry, undo_last

router = Router(tags=["replay"])


@router.get("", response=EntryPage, operation_id="list_entries")
def list_entries(
    request: MemberRequest, verdict: Verdict | None = None, family: str = "", after: str = "", limit: int = 50
) -> Any:
    """Replay entries of the current team, newest first."""
    rows = ReplayEntry.objects.filter(team=member(request).team).select_related("labelled_by")
    if verdict:
        rows = rows.filter(verdict=verdict)
    if family:
        rows = rows.filter(family=family)
    return page_of(rows, after, limit)


@router.get("/{int:pk}", response=EntryRow, operation_id="show_entry")
def show_entry(request: MemberRequest, pk: int) -> Any:
    """One entry."""
    return get_entry(request, pk)


@router.post("/{int:pk}/label", response=EntryRow, operation_id="label_entry")
def label(request: MemberRequest, pk: int, body: LabelIn) -> Any:
    """Change verdict, tags or note; what is left out stays. 409 when another person changed it meanwhile."""
    entry = get_entry(request, pk, Role.ANNOTATOR)
    try:
        label_entry(entry=entry, user=request.user, **body.model_dump())
    except ValueError as error:
        raise BadRequest(str(error)) from error
    return get_entry(request, pk)


@router.post("/{int:pk}/undo", response=EntryRow, operation_id="undo_label")
def undo(request: MemberRequest, pk: int) -> Any:
    """Take back the caller's own last label of this entry."""
    entry = get_entry(request, pk, Role.ANNOTATOR)
    undo_last(entry=entry, user=request.user)
    return get_entry(request, pk)
