"""Task sets, the tasks of one, and one task."""

from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import Purpose, Source
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, Team
from webapp.attacks.task_exploits import Badge, badges_of, standing_of
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus
from webapp.fleet.queries.demonstration_desktop_kinds import offers
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import BadValue, whole_number
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.tasks_library.discrimination import discrimination_of
from webapp.tasks_library.flags import (
    Tries,
    as_text,
    flags_of,
    flaky_screens,
    scored,
    tries_by_source,
    tries_of,
)
from webapp.tasks_library.leakage import leaked, leaked_and_families
from webapp.tasks_library.queries.verifications import verification_of
from webapp.tasks_library.services.verifications import MAX_ROUNDS, queue_verification
from webapp.tasks_library.solve_rates import courses_of
from webapp.tasks_library.task_text import text_to_compare
from webapp.tasks_library.text_diff import diff_lines
from webapp.trajectories.models import Trajectory

NUM_FAILURES = 8


@require_safe
def task_sets(request: MemberRequest) -> HttpResponse:
    """Every set that the team can practise."""
    current = Q(tasks__replaced_in=None)
    rows = TaskSet.objects.listed(member(request).team).annotate(
        num_tasks=Count("tasks", filter=current),
        num_heldout=Count("tasks", filter=current & Q(tasks__split="heldout")),
        num_unsupported=Count("tasks", filter=current & Q(tasks__status=TaskStatus.UNSUPPORTED)),
        num_verified=Count("tasks", filter=current & Q(tasks__verified_at__isnull=False)),
    )
    return render(request, "tasks_library/sets.html", {"task_sets": rows})


def _launch_query(task_set: TaskSet, family: str, *, revision: int) -> str:
    """What the launch form begins with."""
    return urlencode({"tasks.task_set": task_set.name, "tasks.revision": revision, "tasks.families": family})


@require_safe
def task_set(request: MemberRequest, name: str) -> HttpResponse:
    """The tasks of a set, with the flags of those that are shown."""
    team = member(request).team
    found = get_object_or_404(TaskSet.objects.of(team), name=name)
    leaks, families = leaked_and_families(found)
    chosen = {key: request.GET.get(key, "").strip() for key in ("family", "split", "words")}
    rows = found.tasks.current().defer("spec").with_words(chosen["words"])
    if chosen["family"]:
        rows = rows.filter(family=chosen["family"])
    if chosen["split"]:
        rows = rows.filter(split=chosen["split"])
    if request.GET.get("leaked"):
        rows = rows.filter(pk__in=list(leaks))
    page = paginate(rows, request.GET, sorts={"name": "task_id"}, default="name", noun="tasks")
    shown = [task.pk for task in page.rows]
    tries, screens = tries_by_source(team.pk, shown), flaky_screens(team.pk, shown)
    entries = _replay_coverage(team.pk, shown)
    badges = badges_of(team.pk, page.rows)
    ctx = {
        "task_set": found,
        "page": page,
        "rows": [_row(task, tries, screens, leaks, entries, badges) for task in page.rows],
        "chosen": chosen,
        "families": families,
        "num_leaked": len(leaks),
        "is_own": found.team_id == team.pk,
        "launch_query": _launch_query(found, chosen["family"], revision=0),
    }
    return render(request, "tasks_library/set.html", ctx)


def _row(
    task: TaskRecord,
    tries: dict[str, dict[int, Tries]],
    screens: dict[int, list[str]],
    leaks: dict[int, list[int]],
    entries: dict[int, int],
    badges: dict[int, Badge],
) -> dict[str, object]:
    own, num_replay = tries[Source.POLICY].get(task.pk, Tries()), entries.get(task.pk, 0)
    flags = flags_of(
        task,
        own,
        screens.get(task.pk, []),
        leaks.get(task.pk, []),
        num_replay=num_replay if own.num else None,
        oracle=tries[Source.ORACLE].get(task.pk, Tries()),
    )
    badge = badges.get(task.pk)
    return {"task": task, "tries": own, "num_replay": num_replay, "flags": flags, "badge": badge}


def _replay_coverage(team_id: int, tasks: list[int]) -> dict[int, int]:
    """Task -> entries that may be injected."""
    rows = ReplayEntry.objects.filter(
        team_id=team_id, verdict__in=USABLE_VERDICTS, trajectory__task_id__in=tasks
    )
    return dict(rows.order_by().values_list("trajectory__task_id").annotate(num=Count("pk")))


@require_safe
def task(request: MemberRequest, name: str, pk: int) -> HttpResponse:
    """One task: what it asks, how it is set up and scored, and how it went."""
    team = member(request).team
    found = _version(team, name, pk)
    tries = tries_of(team.pk, [pk]).get(pk, Tries())
    screens = flaky_screens(team.pk, [pk]).get(pk, [])
    num_replay = _replay_coverage(team.pk, [pk]).get(pk, 0)
    leaks = leaked(found.task_set).get(pk, [])
    mine = scored(team.pk).filter(task=found).select_related("experiment")
    start = Trajectory.objects.filter(team=team, task=found, turns__index=0).exclude(purpose=Purpose.ATTACK)
    ctx = {
        "task": found,
        "tries": tries,
        "flags": flags_of(found, tries, screens, leaks, num_replay=num_replay if tries.num else None),
        "flaky": mine.filter(final_frame__in=screens[:2]).order_by("final_frame", "score")[:NUM_FAILURES],
        "leaks": TaskRecord.objects.filter(pk__in=leaks).defer("spec"),
        "num_replay": num_replay,
        "courses": courses_of(found, team.pk),
        "failures": mine.filter(score__lt=SOLVED_SCORE)
        .exclude(source=Source.SCRIPTED)
        .order_by("-pk")[:NUM_FAILURES],
        "start_frame": start.order_by("-pk").values_list("turns__frame", flat=True).first(),
        "oracle": found.spec.get("oracle", {}).get("actions", []),
        "parts": [(title, as_text(found.spec.get(key))) for title, key in PARTS if found.spec.get(key)],
        "verification": verification_of(found, team.pk),
        "standing": standing_of(found, team.pk),
        "discrimination": discrimination_of(found, team.pk),
        "launch_query": _launch_query(found.task_set, found.family, revision=0),
        "desktops": [offer for offer in offers() if found.can_run_on(offer.desktops)],
        **_versions(found),
    }
    return render(request, "tasks_library/task.html", ctx)


def _version(team: Team, name: str, pk: int) -> TaskRecord:
    rows = TaskRecord.objects.of(team).select_related("task_set", "author")
    return get_object_or_404(rows, task_set__name=name, pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def verification(request: MemberRequest, name: str, pk: int) -> HttpResponse:
    """The part with oracle and do-nothing runs; a POST queues more of them."""
    if request.method != "POST":
        team = member(request).team
        found = _version(team, name, pk)
        ctx = {"task": found, "verification": verification_of(found, team.pk)}
        return render(request, "tasks_library/parts/verification.html", ctx)
    team = member(request, Role.OPERATOR).team
    found = _version(team, name, pk)
    try:
        rounds = whole_number(request.POST.get("rounds", "1"), "rounds", low=1, high=MAX_ROUNDS)
    except BadValue as refused:
        messages.error(request, f"Nothing was queued: {refused}.")
        return redirect("task-show", name, pk)
    if found.status != TaskStatus.SUPPORTED:
        messages.error(request, f"Nothing was queued: Deskhand's desktops cannot run it: {found.reason}")
    elif not queue_verification(task=found, team_id=team.pk, rounds=rounds, user=request.user):
        messages.warning(request, "Nothing was queued: enough runs of this task wait already.")
    return redirect("task-show", name, pk)


PARTS = (("Set-up", "config"), ("Evaluator", "evaluator"), ("Milestones", "milestones"), ("Oracle", "oracle"))


def _versions(task: TaskRecord) -> dict[str, object]:
    """Every version of the task, the newest first, and what this one changed."""
    rows = task.task_set.tasks.filter(task_id=task.task_id).select_related("author").order_by("-version")
    versions = list(rows)
    before = next((row for row in versions if row.version < task.version), None)
    changes = diff_lines(text_to_compare(before.spec), text_to_compare(task.spec)) if before else []
    return {"versions": versions, "before": before, "changes": changes}
