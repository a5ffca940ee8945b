"""The turns of one trajectory: rated one by one, and for a replay entry trimmed and corrected."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from training.actions.coordinates import off_screen_error
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.lib.request_values import BadValue, check_text, whole_number
from webapp.replay.models import ProcessLabel, ReplayEntry
from webapp.replay.services.labels import label_entry
from webapp.replay.services.parts import split_entry
from webapp.replay.services.process_labels import (
    MAX_TURN,
    export_ratings,
    import_ratings,
    mark_first_wrong,
    rate_turn,
)
from webapp.replay.turn_edits import TurnEdit
from webapp.replay.turn_ratings import BAD, GOOD, balance_of
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.action_words import action_caption
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.turn_display import turn_json

MARKS = {"good": GOOD, "bad": BAD, "none": None}


@require_safe
def turns(request: MemberRequest, pk: int) -> HttpResponse:
    """Every turn with its screen, its ratings and what training makes of it."""
    trajectory = get_trajectory(request, pk)
    entries = list(ReplayEntry.objects.filter(trajectory=trajectory).order_by("part"))
    entry = _chosen(entries, request.GET.get("entry", ""))
    labels = list(ProcessLabel.objects.filter(trajectory=trajectory).select_related("by"))
    mine = next((one for one in labels if one.by_id == request.user.pk and not one.origin), None)
    edit = TurnEdit.read(entry.edit) if entry else TurnEdit()
    balance = balance_of(labels)
    ctx = {
        "trajectory": trajectory,
        "entry": entry,
        "entries": entries,
        "labels": labels,
        "is_edited": bool(entry and entry.edit),
        "rows": [
            _row(turn, mine, balance[turn.index], edit, trajectory.mistake_turn)
            for turn in trajectory.turns.order_by("index")
        ],
    }
    return render(request, "replay/turns.html", ctx)


def _row(
    turn: TurnRecord, mine: ProcessLabel | None, balance: int, edit: TurnEdit, mistake: int | None
) -> dict[str, Any]:
    state, corrected = edit.state_of(turn.index), edit.actions.get(turn.index)
    if state == "trained" and ((balance < 0 and not corrected) or turn.is_context):
        state = "context"
    return {
        "turn": turn,
        "shown": turn_json(turn, with_raw=False),
        "rating": mine.ratings.get(str(turn.index)) if mine else None,
        "is_mistake": mistake == turn.index,
        "is_first_wrong": mine is not None and mine.first_wrong == turn.index,
        "balance": balance,
        "state": state,
        "corrected": action_caption(corrected.model_dump(mode="json")) if corrected else "",
        "is_first": edit.first == turn.index,
        "is_last": edit.last == turn.index,
    }


@require_POST
def mark(request: MemberRequest, pk: int) -> HttpResponse:
    """Rate a turn (`mark` = good, bad or none), or set or take back the mark of the first wrong one."""
    trajectory = get_trajectory(request, pk, Role.ANNOTATOR)
    wanted, index = request.POST.get("mark", ""), _turn_of(request)
    if wanted in MARKS:
        rate_turn(trajectory=trajectory, user=request.user, index=index, rating=MARKS[wanted])
    elif wanted in ("first-wrong", "not-first-wrong"):
        place = index if wanted == "first-wrong" else None
        mark_first_wrong(trajectory=trajectory, user=request.user, index=place)
    else:
        raise BadValue("mark", f"must be one of {', '.join(MARKS)}, first-wrong, not-first-wrong")
    return _to_turn(trajectory, index)


@require_POST
def edit(request: MemberRequest, pk: int) -> HttpResponse:
    """Change what of an entry is trained on: its first or last turn, or one corrected action."""
    trajectory = get_trajectory(request, pk, Role.ANNOTATOR)
    entries = list(ReplayEntry.objects.filter(trajectory=trajectory).order_by("part"))
    entry = _chosen(entries, request.POST.get("entry", ""))
    if entry is None:
        raise Http404("This trajectory is not in the replay buffer.")
    index = _turn_of(request)
    try:
        if request.POST.get("change") == "split":
            part = split_entry(entry=entry, user=request.user, at=index)
            messages.success(request, f"Entry {entry.pk} ends before this turn; entry {part.pk} begins here.")
            return _to_turn(trajectory, index, part)
        changed = _changed(TurnEdit.read(entry.edit), request, trajectory, index)
        changed.check(set(trajectory.turns.values_list("index", flat=True)))
    except BadValue as problem:
        messages.error(request, str(problem))
        return _to_turn(trajectory, index, entry)
    label_entry(entry=entry, user=request.user, edit=changed.as_json())
    return _to_turn(trajectory, index, entry)


def _chosen(entries: list[ReplayEntry], wanted: str) -> ReplayEntry | None:
    """The entry of this id, else the first one."""
    return next((one for one in entries if str(one.pk) == wanted), entries[0] if entries else None)


def _changed(old: TurnEdit, request: MemberRequest, trajectory: Trajectory, index: int) -> TurnEdit:
    """Raises BadValue."""
    match request.POST.get("change", ""):
        case "first":
            return replace(old, first=None if old.first == index or index == 0 else index)
        case "last":
            return replace(old, last=None if old.last == index else index)
        case "before" if index:
            return replace(old, last=index - 1)
        case "correct":
            text = request.POST.get("action", "")
            action = _action_of(text, trajectory, index)
            last = index if request.POST.get("cut") else old.last
            return replace(old, actions={**old.actions, index: action}, last=last)
        case "as-recorded":
            return replace(old, actions={k: v for k, v in old.actions.items() if k != index})
        case "clear":
            return TurnEdit()
    raise BadValue("change", "must be first, last, split, correct, as-recorded or clear")


def _action_of(text: str, trajectory: Trajectory, index: int) -> Action:
    """The action that a person wrote, in pixels of the screen. Raises BadValue."""
    check_text(text, "action")
    turn = trajectory.turns.filter(index=index).first()
    if turn is None:
        raise BadValue("turn", f"the trajectory has no turn {index + 1}")
    screen = (turn.width, turn.height) if turn.width else (0, 0)
    parsed = parse_completion(text, space=CoordinateSpace.SCREEN, screen=screen)
    if parsed.action is None:
        raise BadValue("action", f"{parsed.error}; write for example pyautogui.click(120, 44)")
    if screen[0] and (problem := off_screen_error(parsed.action, screen)):
        raise BadValue("action", problem)
    return parsed.action


def _turn_of(request: MemberRequest) -> int:
    return whole_number(request.POST.get("turn", ""), "turn", high=MAX_TURN)


def _to_turn(trajectory: Trajectory, index: int, entry: ReplayEntry | None = None) -> HttpResponse:
    chosen = f"?entry={entry.pk}" if entry and entry.part else ""
    return redirect(f"{reverse('turn-labels', args=[trajectory.pk])}{chosen}#turn-{index + 1}")


# --- in and out --------------------------------------------------------------------------------------


@require_safe
def export(request: MemberRequest) -> StreamingHttpResponse:
    """Every rating of the team as JSON lines."""
    return export_ratings(member(request).team, request.user)


@require_POST
@once_per_form
def import_labels(request: MemberRequest) -> HttpResponse:
    """Store ratings from a file of JSON lines, all or none."""
    team = member(request, Role.ANNOTATOR).team
    origin = request.POST.get("origin", "")
    try:
        number = import_ratings(request.FILES.get("file"), team=team, user=request.user, origin=origin)
    except BadValue as problem:
        messages.error(request, f"Nothing was stored. {problem}")
        return redirect("replay-transfer")
    messages.success(request, f"Ratings of {number} trajector{'y' if number == 1 else 'ies'} stored.")
    return redirect("replay-transfer")
