"""The replay inbox, an entry's own page, and the buffer's coverage."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from training.contracts.number_text import counted
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Membership, Role, SavedView
from webapp.accounts.queries.saved_views import view_menu
from webapp.lib.request_values import json_body, whole_number, whole_numbers
from webapp.replay.access import get_entry
from webapp.replay.curation.effect import effects_of
from webapp.replay.filters import ALL, EntryFilter
from webapp.replay.fit_for_experiments import fits_of
from webapp.replay.models import Verdict
from webapp.replay.models.entries import stream_of
from webapp.replay.queries import entries as entry_queries
from webapp.replay.queries.queue import QUEUE_SIZE, queue_after
from webapp.replay.services.bulk_labels import MAX_BULK, BulkLabel, label_alike, label_many
from webapp.replay.services.labels import (
    LabelConflict,
    NothingToUndo,
    label_entry,
    to_settle,
    undo_last,
    undo_latest,
)

MAX_WANTED = 8
"""Entries that one request may ask for."""
VERDICT_KEYS = (
    ("A", Verdict.ACCEPTED, "Accept"),
    ("R", Verdict.REJECTED, "Reject"),
    ("G", Verdict.GOLD, "Gold"),
)


@require_safe
def inbox(request: MemberRequest) -> HttpResponse:
    """Queue, player and verdict buttons; the first entries travel with the page."""
    membership = member(request)
    team_id = membership.team_id
    chosen = EntryFilter.from_query(request.GET)
    found = entry_queries.counts_and_cursor(team_id, chosen)
    counts = found.by_verdict
    queue = queue_after(team_id, chosen, None, QUEUE_SIZE)
    wanted = whole_number(request.GET.get("entry", "") or "0", "entry")
    if wanted and wanted not in {entry.pk for entry in queue}:
        queue = [*entry_queries.entry_rows(team_id).filter(pk=wanted), *queue]
    start = next((i for i, entry in enumerate(queue) if entry.pk == wanted), 0)
    first = [entry.pk for entry in queue[start : start + 1 + entry_queries.PREFETCH]]
    ctx = {
        **entry_queries.filter_fields(team_id, chosen),
        "stream": stream_of(team_id),
        "cursor": found.cursor,
        "queue": queue,
        "counts": counts,
        "num_all": sum(counts.values()),
        "num_labelled": sum(counts.values()) - counts[Verdict.INBOX],
        "num_flawed": sum(n for one, n in found.flawed.items() if chosen.verdict in (ALL, one)),
        "num_in_filter": sum(counts.values()) if chosen.verdict == ALL else counts[chosen.verdict],
        "verdicts": [(verdict.value, verdict.label, counts[verdict]) for verdict in Verdict],
        "verdict_keys": VERDICT_KEYS,
        "views": view_menu(request, SavedView.Page.REPLAY, {}),
        "curation": {
            "entries": entry_queries.player_entries(team_id, first, queue),
            "start": start,
            "mayLabel": Role(membership.role).includes(Role.ANNOTATOR),
            "counts": counts,
            "hasMore": len(queue) >= QUEUE_SIZE,
        },
    }
    return render(request, "replay/inbox.html", ctx)


@require_safe
def entries(request: MemberRequest) -> HttpResponse:
    """JSON of whole entries (`?ids=3,4`) and, with `?before=ID`, the queue's next rows as HTML."""
    membership = member(request)
    return JsonResponse(_upcoming(request, membership, *_lacking(request.GET)))


def _lacking(values: Mapping[str, Any], ids: str = "ids") -> tuple[list[int], int | None]:
    """What the browser says it lacks: ids of entries, and the one before which the queue goes on."""
    before = values.get("before")
    wanted = whole_numbers(str(values.get(ids) or ""), ids, at_most=MAX_WANTED)
    return wanted, None if before in (None, "") else whole_number(str(before), "before")


def _upcoming(
    request: MemberRequest, membership: Membership, wanted: list[int], before: int | None
) -> dict[str, Any]:
    """The entries and queue rows that the browser lacks."""
    found: dict[str, Any] = {"entries": entry_queries.player_entries(membership.team_id, wanted)}
    if before is not None:
        chosen = EntryFilter.from_query(request.GET)
        queue = queue_after(membership.team_id, chosen, before, QUEUE_SIZE)
        ctx = {"queue": queue}
        found["rows"] = render_to_string("replay/parts/queue_rows.html", ctx, request) if queue else ""
    return found


@require_POST
def entry_label(request: MemberRequest, pk: int) -> HttpResponse:
    """Label one entry. A JSON body answers with the entry and the next ones; a form goes back to its page."""
    entry = get_entry(request, pk, Role.ANNOTATOR)
    is_json = request.content_type == "application/json"
    body = json_body(request) if is_json else request.POST.dict()
    lacking = _lacking(body, "need")
    tags = body.get("tags")
    number = 1
    shared: dict[str, Any] = {
        "entry": entry,
        "user": request.user,
        "verdict": body.get("verdict"),
        "expected_verdict": body.get("expected_verdict"),
        "trim": body.get("trim") in (True, "1"),
    }
    try:
        if body.get("alike") is True and body.get("verdict") and entry.cluster is not None:
            number = label_alike(**shared)
        else:
            tagged = tags.split(",") if isinstance(tags, str) else tags
            label_entry(**shared, tags=tagged, note=body.get("note"))
    except LabelConflict as conflict:
        if not is_json:
            messages.error(request, str(conflict))
            return redirect("replay-detail", pk)
        return _problem(409, str(conflict), entry=entry_queries.label_json(conflict.entry))
    except ValueError as error:
        if not is_json:
            messages.error(request, str(error))
            return redirect("replay-detail", pk)
        return _problem(400, str(error))
    if not is_json:
        return redirect("replay-detail", pk)
    answer = _upcoming(request, request.membership, *lacking)
    return JsonResponse({"entry": entry_queries.label_json(entry), "number": number, **answer})


@require_POST
def entry_undo(request: MemberRequest, pk: int) -> HttpResponse:
    """Take back the last label of one entry."""
    entry = get_entry(request, pk, Role.ANNOTATOR)
    try:
        undo_last(entry=entry, user=request.user)
    except (LabelConflict, NothingToUndo) as error:
        messages.error(request, str(error))
    return redirect("replay-detail", pk)


@require_POST
def latest_undo(request: MemberRequest) -> HttpResponse:
    """Take back the user's newest label or bulk change; JSON, or back to the inbox for a form."""
    membership = member(request, Role.ANNOTATOR)
    is_json = request.content_type == "application/json"
    body = json_body(request) if is_json else {}
    try:
        events = undo_latest(team=membership.team, user=request.user)
    except (LabelConflict, NothingToUndo) as error:
        if is_json:
            return _problem(409, str(error))
        messages.error(request, str(error))
        return redirect("replay-inbox")
    if not is_json:
        messages.success(request, f"{counted(len(events), 'label')} undone.")
        return _back(request)
    shown = [event.entry_id for event in events[:1]]
    need = shown if body.get("whole") else []
    labels = [entry_queries.label_json(event.entry) for event in events[:200]]
    upcoming = _upcoming(request, membership, need, None)
    if need:
        rows = entry_queries.entry_rows(membership.team_id).filter(pk__in=shown)
        upcoming["row"] = render_to_string("replay/parts/queue_rows.html", {"queue": rows}, request)
    return JsonResponse({"labels": labels, "number": len(events), **upcoming})


@require_POST
def bulk_label(request: MemberRequest) -> HttpResponse:
    """One verdict for all entries in the filter of the URL; `expected` is the number that was shown."""
    membership = member(request, Role.ANNOTATOR)
    chosen = EntryFilter.from_query(request.GET)
    rows = chosen.apply(entry_queries.entry_rows(membership.team_id))
    verdict = request.POST.get("verdict", "")
    expected, number = request.POST.get("expected", ""), rows.count()
    if expected != str(number):
        messages.error(request, f"The filter holds {number} entries by now, not {expected}: look again.")
        return _back(request)
    num_held = rows.filter(pk__in=to_settle()).count()
    try:
        done = label_many(
            entries=rows, user=request.user, verdict=verdict, trim=request.POST.get("trim") == "1"
        )
    except ValueError as error:
        messages.error(request, str(error))
        return _back(request)
    held = (
        f" Left out: {counted(num_held, 'entry', 'entries')} that a review holds to settle."
        if num_held
        else ""
    )
    rest = f" {number - MAX_BULK} are left: label them once more." if number > MAX_BULK else ""
    said = f"{counted(done.changed, 'entry', 'entries')} marked {verdict}. Press Z to undo."
    messages.success(request, f"{said}{held_back_words(done)}{held}{rest}")
    return redirect(f"{reverse('replay-inbox')}?{request.GET.urlencode()}")


@require_safe
def entry_detail(request: MemberRequest, pk: int) -> HttpResponse:
    """The trajectory, every label it ever had, and every step that used it."""
    entry = get_entry(request, pk)
    turns = list(entry.trajectory.turns.order_by("index"))
    fits = fits_of(entry)
    checks = entry_queries.checks_of(entry, fits[0] if fits else None)
    ctx = {
        "entry": entry,
        "trajectory": entry.trajectory,
        "turns": turns,
        "checks": checks,
        "fits": fits,
        "history": entry_queries.history_of(entry),
        "uses": entry_queries.uses_of(entry),
        "effects": effects_of(entry) if entry.num_uses else [],
        "verdict_keys": VERDICT_KEYS,
        "player": entry_queries.entry_json(entry, turns, checks),
        "trimmed_to": entry_queries.trimmed_to(entry, turns) if entry.has_bad_turns else None,
    }
    return render(request, "replay/detail.html", ctx)


@require_safe
def buffer_stats(request: MemberRequest) -> HttpResponse:
    """Family x verdict."""
    team_id = member(request).team_id
    ctx = {"coverage": entry_queries.coverage(team_id), "verdicts": Verdict.labels}
    return render(request, "replay/stats.html", ctx)


def held_back_words(done: BulkLabel) -> str:
    if not done.held_back:
        return ""
    verb = "was" if done.held_back == 1 else "were"
    return f" {done.held_back} {verb} held back: unparsable or refused turns; accept them trimmed."


def _problem(status: int, message: str, **more: Any) -> JsonResponse:
    return JsonResponse({"error": {"message": message}, **more}, status=status)


def _back(request: MemberRequest) -> HttpResponse:
    """To the page that sent the form, when it is one of ours."""
    target = request.META.get("HTTP_REFERER", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}):
        return HttpResponseRedirect(target)
    return redirect("replay-inbox")
