"""The page on which people write a task, and what is said of it while they type."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role, Team
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.lib.request_values import BadValue, row_id
from webapp.tasks_library.leakage import leaking
from webapp.tasks_library.services.task_sets import get_set, save_task
from webapp.tasks_library.task_text import Reading, read_task, text_of
from webapp.tasks_library.text_diff import diff_lines

BLANK = {
    "id": "",
    "instruction": "",
    "family": "",
    "level": 1,
    "split": "train",
    "config": [],
    "evaluator": {},
    "screen": [512, 384],
    "oracle": {},
    "max_turns": None,
}


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def editor(request: MemberRequest) -> HttpResponse:
    """A new task, or with `?task=` another version of one; a refused one is shown as it was typed."""
    membership = member(request, Role.OPERATOR)
    team = membership.team
    if request.method != "POST":
        shown = _version(request.GET, team)
        text = text_of(shown.spec) if shown else json.dumps(BLANK, indent=2)
        name = shown.task_set.name if shown and shown.task_set.team_id == team.pk else ""
        base = _newest(shown) if shown else None
        return _page(request, team, base, text, request.GET.get("set", "") or name, "")
    typed = request.POST
    base, text = _version(typed, team), typed.get("text", "")
    name, note = typed.get("set", "").strip(), typed.get("note", "")
    reading = read_task(text)
    try:
        if reading.task is None or reading.is_refused:
            raise BadValue("", "; ".join(_told(reading)))
        saved = save_task(
            team=team, user=request.user, set_name=name, task=reading.task, note=note, base=base
        )
    except BadValue as refused:
        messages.error(request, f"Nothing was saved: {refused}.")
        return _page(request, team, base, text, name, note, status=422)
    messages.success(request, f"Saved as version {saved.version} of {saved.task_id}.")
    return redirect("task-show", saved.task_set.name, saved.pk)


@require_POST
def check(request: MemberRequest) -> HttpResponse:
    """What is wrong with the text, and what it changes; it stores nothing."""
    team = member(request, Role.OPERATOR).team
    base, text = _version(request.POST, team), request.POST.get("text", "")
    reading = read_task(text)
    own, leak = None, ""
    if name := request.POST.get("set", "").strip():
        try:
            own = get_set(name, team)
        except BadValue as refused:
            leak = str(refused)
    if reading.task is not None and not leak:
        leak = next((f"split: {reason}" for _, reason in leaking(own, [reading.task])), "")
    changes = []
    if base is not None and reading.task is not None:
        changes = diff_lines(text_of(base.spec), text_of(reading.task.model_dump(mode="json")))
    ctx = {"reading": reading, "leak": leak, "base": base, "changes": changes}
    return render(request, "tasks_library/parts/check.html", ctx)


def _told(reading: Reading) -> list[str]:
    return [
        f"line {one.line}: {one.path} {one.text}" if one.line else f"{one.path} {one.text}".strip()
        for one in reading.problems
        if one.is_refusal
    ]


def _version(values: QueryDict, team: Team) -> TaskRecord | None:
    """The version that `task=` names."""
    asked = values.get("task", "")
    if not asked:
        return None
    rows = TaskRecord.objects.of(team).select_related("task_set")
    return get_object_or_404(rows, pk=row_id(asked))


def _newest(shown: TaskRecord) -> TaskRecord:
    """What a change is compared with, whichever version it begins from."""
    return shown.task_set.tasks.current().filter(task_id=shown.task_id).first() or shown


def _page(
    request: MemberRequest,
    team: Team,
    base: TaskRecord | None,
    text: str,
    set_name: str,
    note: str,
    status: int = 200,
) -> HttpResponse:
    ctx = {
        "base": base,
        "is_copy": base is not None and base.task_set.team_id != team.pk,
        "text": text,
        "set_name": set_name,
        "note": note,
        "own_sets": TaskSet.objects.filter(team=team).order_by("name"),
    }
    return render(request, "tasks_library/editor.html", ctx, status=status)
