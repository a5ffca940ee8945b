"""Export to and import from JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.contracts.types import Action
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Role
from webapp.experiments.models import TaskSet
from webapp.replay import queries
from webapp.replay.filters import EntryFilter
from webapp.replay.labels import LABEL_COLUMNS
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.replay.slime_export import CannotExport, ImageForm, action_text, export_line
from webapp.replay.slime_import import ImportRefused, Plan, plan_import, store_plan
from webapp.trajectories.models import TurnRecord

MAX_UPLOAD_BYTES = 512 * 1024 * 1024


@require_http_methods(["GET", "HEAD", "POST"])
def transfer(request: MemberRequest) -> HttpResponse:
    """The page with both directions; a POST imports the file."""
    role = Role.ANNOTATOR if request.method == "POST" else Role.VIEWER
    member(request, role)
    problems: list[str] = []
    if request.method == "POST":
        try:
            plan = _plan(request)
        except ImportRefused as refused:
            problems = refused.problems
        else:
            if "dry_run" in request.POST:
                return _page(request, [], status=200, plan=plan)
            keep_labels = bool(request.POST.get("keep_labels"))
            number = len(store_plan(plan, request.membership.team, request.user, keep_labels))
            there = f" {len(plan.known)} were here already." if plan.known else ""
            messages.success(request, f"{number} {'entry' if number == 1 else 'entries'} imported.{there}")
            return redirect("replay-inbox")
    return _page(request, problems, status=400 if problems else 200)


def _page(
    request: MemberRequest,
    problems: list[str],
    *,
    status: int,
    can_leave_out: bool = False,
    plan: Plan | None = None,
) -> HttpResponse:
    membership = member(request)
    rows = ReplayEntry.objects.filter(team_id=membership.team_id, verdict__in=USABLE_VERDICTS)
    ctx = {
        "nav": "replay",
        "problems": problems,
        "plan": plan,
        "can_leave_out": can_leave_out,
        "num_usable": rows.count(),
        "task_sets": TaskSet.objects.order_by("name"),
        "may_label": Role(membership.role).includes(Role.ANNOTATOR),
    }
    return render(request, "replay/transfer.html", ctx, status=status)


def _plan(request: MemberRequest) -> Plan:
    upload = request.FILES.get("file")
    if upload is None:
        raise ImportRefused(["file: choose a .jsonl file"])
    if (upload.size or 0) > MAX_UPLOAD_BYTES:
        raise ImportRefused([f"file: larger than {MAX_UPLOAD_BYTES // 2**20} MiB; split it"])
    task_set = TaskSet.objects.filter(name=request.POST.get("task_set", "")).first()
    if task_set is None:
        raise ImportRefused(["task_set: choose the task set that the task ids belong to"])
    return plan_import(lines=_text_lines(upload), team=request.membership.team, task_set=task_set)


def _text_lines(upload: UploadedFile) -> Iterator[str]:
    for number, line in enumerate(upload, start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ImportRefused([f"line {number}: not UTF-8"]) from error


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
