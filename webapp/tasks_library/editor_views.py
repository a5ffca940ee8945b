"""The page on which people write a task, and what is said of it while they type."""

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
from webapp.tasks_library.examples import examples
from webapp.tasks_library.leakage import leaking
from webapp.tasks_library.models import Draft
from webapp.tasks_library.proposed.task import Proposal, propose
from webapp.tasks_library.queries.verifications import verification_of
from webapp.tasks_library.services.drafts import try_task, workbench_name
from webapp.tasks_library.services.task_sets import get_set, save_task
from webapp.tasks_library.task_text import Reading, read_task, text_of, text_to_compare
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
PARTS = (
    ("config", "Set-up, a list of steps", 6, "a step"),
    ("evaluator", "Evaluator", 10, "a check"),
    ("oracle", "Oracle, actions that solve it", 5, "an action"),
)
"""Fields of JSON: (key, label, rows, what one more of it is)."""


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def editor(request: MemberRequest) -> HttpResponse:
    """A new task, with `?draft=` one that was made at a desktop, or with `?task=` another version of one; a
    refused one is shown as it was typed."""
    membership = member(request, Role.OPERATOR)
    team = membership.team
    if request.method != "POST":
        if request.GET.get("draft"):
            return _proposed(request, team)
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


def _proposed(request: MemberRequest, team: Team) -> HttpResponse:
    """The editor with what is proposed from a person's work at a desktop."""
    made = Draft.objects.filter(trajectory__team=team, end__isnull=False).select_related("trajectory__task")
    draft = get_object_or_404(made, trajectory_id=row_id(request.GET["draft"]))
    proposal = propose(draft)
    values = BLANK | {"id": f"made/{draft.trajectory_id}", "family": "made"} | proposal.values
    return _page(request, team, None, json.dumps(values, indent=2, ensure_ascii=False), "", "", proposal)


@require_http_methods(["GET", "HEAD", "POST"])
def try_out(request: MemberRequest) -> HttpResponse:
    """Run the oracle and doing nothing of a task that is not saved; a GET shows how they stand."""
    team = member(request, Role.OPERATOR).team
    if request.method == "POST":
        reading = read_task(request.POST.get("text", ""))
        if reading.task is None or reading.problems:
            why = "; ".join(f"{problem.path} {problem.text}".strip() for problem in reading.problems)
            return HttpResponse(f"Not tried: {why}.", status=422, content_type="text/plain")
        row = try_task(task=reading.task, team=team, user=request.user)
    else:
        tried = TaskRecord.objects.filter(task_set__name=workbench_name(team))
        row = get_object_or_404(tried, pk=row_id(request.GET.get("tried", "")))
    ctx = {"task": row, "verification": verification_of(row, team.pk)}
    answer = render(request, "tasks_library/parts/verification.html", ctx)
    answer["X-Tried"] = str(row.pk)
    return answer


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
        changes = diff_lines(
            text_to_compare(base.spec), text_to_compare(reading.task.model_dump(mode="json"))
        )
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
    proposal: Proposal | None = None,
    status: int = 200,
) -> HttpResponse:
    ctx = {
        "base": base,
        "is_copy": base is not None and base.task_set.team_id != team.pk,
        "text": text,
        "set_name": set_name,
        "note": note,
        "parts": PARTS,
        "proposal": proposal,
        "examples": examples(),
        "own_sets": TaskSet.objects.listed(team).filter(team=team),
    }
    return render(request, "tasks_library/editor.html", ctx, status=status)
