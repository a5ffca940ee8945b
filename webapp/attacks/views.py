"""Attacks from a task's page, and what people say of exploits."""

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.attacks.access import get_exploit, get_version
from webapp.attacks.services.model_attacks import ask_for_attacks
from webapp.attacks.services.scripted_runs import attack_fork, attack_task, check_version, dismiss_exploit
from webapp.attacks.task_exploits import standing_of
from webapp.lib.request_values import BadValue, whole_number
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.queries.branches import BranchRefused


@require_http_methods(["GET", "HEAD", "POST"])
def attacks(request: MemberRequest, name: str, pk: int) -> HttpResponse:
    """The part of the task's page; a POST queues attacks, with `kind=check` a check of this version, and with
    `kind=model` the attacks that a language model writes."""
    if request.method != "POST":
        team = member(request).team
        found = get_version(team, name, pk)
        ctx = {
            "task": found,
            "standing": standing_of(found, team.pk),
        }
        return render(request, "attacks/parts/standing.html", ctx)
    team = member(request, Role.OPERATOR).team
    found = get_version(team, name, pk)
    kind = request.POST.get("kind")
    try:
        if kind == "model":
            chat = {name: request.POST.get(name, "").strip() for name in ("url", "model", "secret")}
            ask_for_attacks(task=found, team_id=team.pk, user=request.user, chat=chat)
        else:
            begin = check_version if kind == "check" else attack_task
            begin(task=found, team_id=team.pk, user=request.user)
    except BadValue as refused:
        messages.error(request, f"Nothing was queued: {refused.problem}.")
    return redirect("task-show", name, pk)


@require_POST
def attack_from_turn(request: MemberRequest, pk: int) -> JsonResponse:
    """Queue attackers that go on from a turn of a machine; answers where they are, or what is wrong."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    turn = whole_number(request.POST.get("turn", ""), "turn")
    try:
        group = attack_fork(trajectory=trajectory, turn=turn, user=request.user)
    except (BadValue, BranchRefused) as refused:
        return JsonResponse({"error": str(refused), "field": "turn"}, status=409)
    return JsonResponse({"group": group.pk, "tree": reverse("group-detail", args=[group.pk])})


@require_POST
def dismiss(request: MemberRequest, pk: int) -> HttpResponse:
    """Say why a script is no exploit; an empty text takes it back."""
    exploit = get_exploit(request, pk, Role.OPERATOR)
    dismiss_exploit(exploit=exploit, user=request.user, why=request.POST.get("why", "").strip())
    return redirect("task-show", exploit.task.task_set.name, exploit.task_id)
