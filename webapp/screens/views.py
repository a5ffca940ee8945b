"""The page of a live desktop, control of it, and the start of a demonstration."""

from typing import Any, Literal

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.contracts.types import TrajectoryStatus
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.experiments.access import get_experiment
from webapp.experiments.models import TaskRecord
from webapp.fleet.queries.demonstration_desktop_kinds import offer_named, offer_of, offers
from webapp.lib.request_values import whole_number
from webapp.live.event_publishing import last_seq
from webapp.screens.access import get_own_control
from webapp.screens.queries import screens
from webapp.screens.queries.screens import is_demonstration
from webapp.screens.services import controls
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.queries.trajectories import turns_of
from webapp.trajectories.services.trajectories import end_trajectory
from webapp.trajectories.viewer_parts import card_context

CONFLICT = 409
MAX_TURNS_SHOWN = 200


@require_safe
def show_desktop(request: MemberRequest, pk: int) -> HttpResponse:
    """Watch a desktop live, or control it. The cursor is read before the rows."""
    cursor = last_seq(f"trajectory.{pk}")
    trajectory = get_trajectory(request, pk)
    ctx = {
        "trajectory": trajectory,
        "group": trajectory.group,
        "experiment": trajectory.experiment,
        "cursor": cursor,
        "is_demonstration": is_demonstration(trajectory),
        "draft": screens.draft_of(trajectory),
        "may_control": Role(request.membership.role).includes(Role.OPERATOR),
        "state": screens.screen_state(trajectory, request.user),
        "screen": trajectory.task.spec.get("screen") or (512, 384),
        "offer": offer_of(trajectory.desktop_config),
        "cards": _cards(trajectory),
    }
    return render(request, "screens/desktop.html", ctx)


@require_safe
def show_turns(request: HttpRequest, pk: int) -> HttpResponse:
    """The list of turns beside the screen, rendered again when one was added."""
    trajectory = get_trajectory(request, pk)
    ctx = {"trajectory": trajectory, "cards": _cards(trajectory)}
    return render(request, "screens/parts/turns.html", ctx)


@require_safe
def show_checks(request: MemberRequest, pk: int) -> HttpResponse:
    """How it was scored, rendered again when it has ended."""
    trajectory = get_trajectory(request, pk)
    ctx = {
        "trajectory": trajectory,
        "is_demonstration": is_demonstration(trajectory),
        "may_control": Role(request.membership.role).includes(Role.OPERATOR),
        "offer": offer_of(trajectory.desktop_config),
    }
    return render(request, "screens/parts/checks.html", ctx)


def _cards(trajectory: Any) -> list[dict[str, Any]]:
    """Newest first."""
    turns = turns_of(trajectory)[-MAX_TURNS_SHOWN:]
    return [card_context(turn) for turn in reversed(turns)]


@require_safe
def show_state(request: MemberRequest, pk: int) -> JsonResponse:
    """Who controls, whether there is a screen, how the trajectory stands."""
    return JsonResponse(screens.screen_state(get_trajectory(request, pk), request.user))


# --- control -----------------------------------------------------------------------------------------


@require_POST
def take_control(request: MemberRequest, pk: int) -> JsonResponse:
    """Ask for control; 409 names who has it."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    try:
        controls.request_control(trajectory=trajectory, user=request.user)
    except controls.ControlTaken as error:
        return JsonResponse({"error": f"{error}."}, status=CONFLICT)
    except controls.NotControllable as error:
        return JsonResponse({"error": str(error)}, status=CONFLICT)
    return JsonResponse(screens.screen_state(trajectory, request.user))


@require_POST
def hold_next(request: MemberRequest, pk: int) -> HttpResponse:
    """The page of the experiment's desktop that begins next, held for the person who asked."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    try:
        control = controls.hold_next(experiment=experiment, user=request.user)
    except controls.NotControllable as error:
        messages.warning(request, str(error))
        return redirect("experiment-detail", pk)
    return redirect("desktop-show", control.trajectory_id)


@require_POST
def watch(request: MemberRequest, pk: int) -> HttpResponse:
    """The desktop, whose agent waits while the person looks; where it is over, the next one."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    try:
        pk = controls.watch(trajectory=trajectory, user=request.user)
    except (controls.ControlTaken, controls.NotControllable) as error:
        messages.warning(request, str(error))
    return redirect("desktop-show", pk)


@require_POST
def renew_control(request: MemberRequest, pk: int) -> JsonResponse:
    """The page that wants control is still open."""
    control = get_own_control(request, pk)
    controls.renew_control(control_id=control.pk, user_id=request.user.pk)
    return JsonResponse(screens.screen_state(control.trajectory, request.user))


@require_POST
def hand_back(request: MemberRequest, pk: int) -> JsonResponse:
    """Let the agent go on; a demonstration has none and is cancelled."""
    control = get_own_control(request, pk)
    controls.hand_back_control(control=control)
    if is_demonstration(control.trajectory):
        end_trajectory(trajectory_id=control.trajectory_id, status=TrajectoryStatus.CANCELLED)
    return JsonResponse(screens.screen_state(control.trajectory, request.user))


@require_POST
def finish(request: MemberRequest, pk: int) -> JsonResponse:
    """End the trajectory and have it evaluated. `claim`: success, or failure for an infeasible task."""
    control = get_own_control(request, pk)
    draft = screens.draft_of(control.trajectory)
    if draft and draft.start is None:
        return JsonResponse({"error": "Press Start here before you do the task."}, status=CONFLICT)
    claim: Literal["success", "failure"] = "failure" if request.POST.get("claim") == "failure" else "success"
    if not controls.finish_control(control=control, claim=claim):
        return JsonResponse({"error": "You do not control this desktop any more."}, status=CONFLICT)
    return JsonResponse(screens.screen_state(control.trajectory, request.user))


# --- demonstrations ----------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def demonstrate(request: MemberRequest) -> HttpResponse:
    """Choose a task and get a clean desktop with its set-up."""
    membership = member(request, Role.OPERATOR)
    asked = request.POST if request.method == "POST" else request.GET
    available = offers()
    offer = offer_named(asked.get("desktop", "")) or available[0]
    runnable = TaskRecord.objects.of(membership.team).runnable(offer.desktops)
    if request.method == "POST":
        pk = whole_number(request.POST.get("task", ""), "task")
        control = controls.start_demonstration(
            task=get_object_or_404(runnable, pk=pk),
            team_id=membership.team_id,
            user=request.user,
            desktops=offer.desktops,
            reads_texts=bool(asked.get("texts")),
        )
        return redirect("desktop-show", control.trajectory_id)
    words, family, split = (request.GET.get(name, "").strip() for name in ("words", "family", "split"))
    found = screens.demonstrable_tasks(membership.team, offer.desktops, words, family, split)
    named = TaskRecord.objects.of(membership.team).listed().exclude(family="").order_by("family")
    families = named.values_list("family", flat=True)
    shown = list(found[: screens.MAX_TASKS_SHOWN + 1])
    if not TaskRecord.objects.of(membership.team).exists():
        messages.info(request, "There are no tasks yet; import a task set first.")
    ctx = {
        "offers": available if offer in available else [*available, offer],
        "offer": offer,
        "reads_texts": bool(asked.get("texts")),
        "tasks": shown[: screens.MAX_TASKS_SHOWN],
        "has_more": len(shown) > screens.MAX_TASKS_SHOWN,
        "families": families.distinct(),
        "words": words,
        "family": family,
        "split": split,
    }
    return render(request, "screens/demonstrate.html", ctx)
