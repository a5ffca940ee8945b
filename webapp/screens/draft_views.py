"""Making a task by doing it: the desktop is opened, arranged, and the task is done on it once."""

import shlex
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.tasks.unusable_values import SCREEN_SIDES
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.fleet.queries.demonstration_desktop_kinds import Offer, offers
from webapp.lib.request_values import BadValue, check_text, whole_number
from webapp.screens.queries import screens
from webapp.screens.services import controls
from webapp.tasks_library.models import Draft
from webapp.tasks_library.services import drafts
from webapp.trajectories.access import get_trajectory

SCREENS = ("512x384", "800x600", "1024x768", "1280x720", "1920x1080")
NUM_DRAFTS = 8
MAX_CONTENT = 20_000
BAD = 400


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def new_task(request: MemberRequest) -> HttpResponse:
    """Choose a desktop and get it; below, what was made before and perhaps not saved."""
    membership = member(request, Role.OPERATOR)
    team, usable = membership.team, _offers()
    if request.method == "POST":
        offer = next((each for each in usable if each.name == request.POST.get("desktop")), usable[0])
        task = drafts.blank_task(team=team, user=request.user, screen=_screen(request.POST.get("screen", "")))
        control = controls.start_demonstration(
            task=task, team_id=team.pk, user=request.user, desktops=offer.desktops
        )
        drafts.create_draft(trajectory=control.trajectory)
        return redirect("desktop-show", control.trajectory_id)
    made = Draft.objects.filter(trajectory__team=team, end__isnull=False).order_by("-pk")
    ctx = {
        "offers": usable,
        "sizes": SCREENS,
        "made": made.only("trajectory_id", "created_at")[:NUM_DRAFTS],
    }
    return render(request, "screens/new_task.html", ctx)


@require_safe
def draft_panel(request: MemberRequest, pk: int) -> HttpResponse:
    """What to do next, beside the desktop."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    draft = get_object_or_404(Draft, trajectory=trajectory)
    return render(request, "screens/parts/draft.html", {"trajectory": trajectory, "draft": draft})


@require_POST
def draft_step(request: MemberRequest, pk: int) -> JsonResponse:
    """Open a program, put a file, or start here; answers the state of the desktop."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    draft = get_object_or_404(Draft, trajectory=trajectory)
    try:
        _do(draft, request.POST.get("do", ""), request)
    except BadValue as refused:
        return JsonResponse({"error": f"{refused}."}, status=BAD)
    return JsonResponse(screens.screen_state(trajectory, request.user))


def _do(draft: Draft, what: str, request: MemberRequest) -> None:
    """Raises BadValue."""
    if what == "start":
        drafts.start_here(draft=draft)
    elif what == "open":
        drafts.add_step(draft=draft, step=_step("launch", command=_command(request.POST.get("command", ""))))
    elif what == "file":
        path, content = request.POST.get("path", "").strip(), request.POST.get("content", "")
        if not path or len(path) > 300:
            raise BadValue("path", "name the file, e.g. notes.txt")
        check_text(path, "path")
        if len(content) > MAX_CONTENT:
            raise BadValue("content", f"is longer than {MAX_CONTENT} characters")
        files = [{"path": path, "content": content}]
        drafts.add_step(draft=draft, step=_step("upload_file", files=files))
    else:
        raise BadValue("do", "must be open, file or start")


def _command(text: str) -> list[str]:
    check_text(text, "command")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadValue("command", f"cannot be read: {error}") from error
    if not words or len(text) > 1000:
        raise BadValue("command", "name a program, e.g. mousepad notes.txt")
    return words


def _step(verb: str, **parameters: Any) -> dict[str, Any]:
    return {"type": verb, "parameters": parameters}


def _offers() -> list[Offer]:
    """Desktops of our own with Linux: their files, programs and windows can be looked at."""
    own = [each for each in offers() if each.desktops.provider_info.is_on_desk_host]
    linux = [each for each in own if each.desktops.provider_section.system == "linux"]
    return linux or offers()[:1]


def _screen(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    low, high = SCREEN_SIDES
    sides = [whole_number(side, "screen", low=low, high=high) for side in (width, height)]
    return sides[0], sides[1]
