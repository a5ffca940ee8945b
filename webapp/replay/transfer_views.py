"""Export to and import from JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.contracts.types import Action
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Role
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue
from webapp.replay import queries
from webapp.replay.filters import EntryFilter
from webapp.replay.imports.jobs import request_import, task_set_of, upload_of
from webapp.replay.labels import LABEL_COLUMNS
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.replay.slime_export import CannotExport, ImageForm, action_text, export_line
from webapp.trajectories.models import TurnRecord

NUM_IMPORTS = 8
"""Newest ones on the page."""


@require_http_methods(["GET", "HEAD", "POST"])
def transfer(request: MemberRequest) -> HttpResponse:
    """The page with both directions; a POST has a file checked."""
    if request.method != "POST":
        member(request)
        return _page(request, [], status=200)
    team = member(request, Role.ANNOTATOR).team
    try:
        job = request_import(
            team=team,
            user=request.user,
            task_set=task_set_of(request.POST.get("task_set", "")),
            upload=upload_of(request.FILES.get("file")),
            keep_labels="keep_labels" in request.POST,
        )
    except BadValue as problem:
        return _page(request, [str(problem)], status=400)
    return redirect("replay-import", job.pk)


def _page(
    request: MemberRequest, problems: list[str], *, status: int, can_leave_out: bool = False
) -> HttpResponse:
    membership = member(request)
    rows = ReplayEntry.objects.filter(team_id=membership.team_id, verdict__in=USABLE_VERDICTS)
    ctx = {
        "nav": "replay",
        "problems": problems,
        "can_leave_out": can_leave_out,
        "num_usable": rows.count(),
        "task_sets": TaskSet.objects.order_by("name"),
        "imports": membership.team.replay_imports.select_related("owner")[:NUM_IMPORTS],
        "may_label": Role(membership.role).includes(Role.ANNOTATOR),
    }
    return render(request, "replay/transfer.html", ctx, status=status)


@require_safe
def export(request: MemberRequest) -> HttpResponseBase:
    """Entries of the filter in the URL (accepted and gold when none is named), one line each."""
    team_id = member(request).team_id
    chosen = EntryFilter.from_query(request.GET)
    rows = queries.entry_rows(team_id)
    if "verdict" in request.GET:
        rows = chosen.apply(rows)
    else:
        rows = chosen.apply_but_verdict(rows).filter(verdict__in=USABLE_VERDICTS)
    form: ImageForm = "sha256" if request.GET.get("images") == "sha256" else "base64"
    labels = {row["pk"]: row for row in rows.order_by("id").values("pk", *LABEL_COLUMNS)}
    refused = left_out(list(labels))
    if refused and "leave_out" not in request.GET:
        return _page(request, list(refused.values()), status=409, can_leave_out=True)
    labels = {pk: label for pk, label in labels.items() if pk not in refused}
    detail = {"entries": len(labels), "filter": request.GET.urlencode()[:200]}
    log_action(AuditAction.EXPORTED, person=request.user, team=team_id, kind="entry", **detail)
    response = StreamingHttpResponse(
        _stream(labels, form), content_type="application/x-ndjson; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="deskhand-replay.jsonl"'
    return response


async def _stream(labels: dict[int, dict[str, Any]], form: ImageForm) -> AsyncIterator[bytes]:
    """One entry at a time: its images are the bulk. Each has the label that it had at the beginning."""
    for pk, label in labels.items():
        line = await sync_to_async(_line)(pk, label, form)
        if line:
            yield line


def left_out(entry_ids: list[int]) -> dict[int, str]:
    """Entries with an action that the format has no form for: id -> why."""
    found: dict[int, str] = {}
    rows = TurnRecord.objects.filter(trajectory__replay_entry__in=entry_ids, action__isnull=False)
    for pk, index, action in rows.values_list("trajectory__replay_entry", "index", "action").iterator():
        try:
            action_text(Action.model_validate(action), f"entry {pk}, turn {index + 1}")
        except CannotExport as problem:
            found.setdefault(pk, str(problem))
    return found


def _line(pk: int, label: dict[str, Any], form: ImageForm) -> bytes:
    rows = ReplayEntry.objects.select_related("trajectory__task", "trajectory__group", "labelled_by")
    entry = rows.prefetch_related("trajectory__turns").filter(pk=pk).first()
    if entry is None:
        return b""
    if entry.labelled_by_id != label["labelled_by"]:
        entry.labelled_by = User.objects.filter(pk=label["labelled_by"]).first()
    for name in ("verdict", "tags", "note"):
        setattr(entry, name, label[name])
    return export_line(entry, form).encode() + b"\n"
