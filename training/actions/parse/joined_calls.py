"""Calls of code that mean one action together: a drag with its start, a click with keys held, a paste."""

from collections.abc import Iterator, Sequence

from training.actions.errors import ActionTextError
from training.actions.key_names import MODIFIERS
from training.actions.parse.pyautogui_functions import Copied
from training.contracts.action import CLICKS, MAX_DOWN_KEYS, WITH_MODIFIERS, Action, ActionKind

K = ActionKind
STARTED = CLICKS | {K.DRAG, K.MOUSE_DOWN}
"""What begins where a move before it went."""
HALVES = (K.KEY_DOWN, K.KEY_UP)
PASTE_KEYS = (("ctrl", "v"), ("ctrl", "shift", "v"), ("super", "v"))


def join_calls(steps: Sequence[Action | Copied]) -> Iterator[Action]:
    """The actions of `steps` in order. Raises ActionTextError for a copied text that nothing pastes."""
    rest = list(steps)
    while rest:
        joined, used = _joined(rest)
        yield joined
        del rest[:used]


def _joined(steps: Sequence[Action | Copied]) -> tuple[Action, int]:
    """(the next action, how many of the steps it is made of)"""
    first = steps[0]
    after = steps[1] if len(steps) > 1 else None
    if isinstance(first, Copied):
        if isinstance(after, Action) and after.kind is K.KEY and after.keys in PASTE_KEYS:
            return Action(kind=K.PASTE, text=first.text), 2
        raise ActionTextError("what is copied must be pasted by the next call, ctrl and v")
    if first.kind is K.MOVE and isinstance(after, Action) and after.kind in STARTED and after.x is None:
        begun = after.model_copy(update={"x": first.x, "y": first.y})
        return _dragged(begun, steps[2:], 2) or (begun, 2)
    if dragged := _dragged(first, steps[1:], 1):
        return dragged
    if first.kind in HALVES:
        keys, used = _halves(steps, first.kind)
        held = _held(steps, keys, used) if first.kind is K.KEY_DOWN else None
        return held or (Action(kind=first.kind, keys=keys), used)
    return first, 1


def _dragged(down: Action, steps: Sequence[Action | Copied], place: int) -> tuple[Action, int] | None:
    """The drag of a button that goes down, moves once and comes up, and what it is made of; None for less."""
    moves = [step for step in steps[:1] if isinstance(step, Action) and step.kind is K.MOVE]
    up = steps[len(moves)] if len(steps) > len(moves) else None
    if down.kind is not K.MOUSE_DOWN or not isinstance(up, Action) or up.kind is not K.MOUSE_UP:
        return None
    end = moves[0] if moves else up
    is_there = end.x is not None and (up.x is None or (up.x, up.y) == (end.x, end.y))
    if not is_there or up.button != down.button:
        return None
    drag = Action(kind=K.DRAG, x=down.x, y=down.y, to_x=end.x, to_y=end.y, button=down.button)
    return drag, place + len(moves) + 1


def _held(steps: Sequence[Action | Copied], keys: tuple[str, ...], place: int) -> tuple[Action, int] | None:
    """One action that is done while `keys` are down, and what it is with them; None when it is more."""
    if place == len(steps):
        return None
    action, used = _joined(steps[place:])
    place += used
    up, used = _halves(steps[place:], K.KEY_UP)
    if sorted(up) != sorted(keys):
        return None
    if action.kind is K.WAIT:
        return Action(kind=K.KEY, keys=keys, seconds=action.seconds), place + used
    if action.kind is K.KEY and len(keys) + len(action.keys) <= MAX_DOWN_KEYS:
        return action.model_copy(update={"keys": (*keys, *action.keys)}), place + used
    is_whole = action.kind in WITH_MODIFIERS and not action.modifiers and len(set(keys)) == len(keys)
    if not is_whole or not set(keys) <= MODIFIERS:
        return None
    return action.model_copy(update={"modifiers": keys}), place + used


def _halves(steps: Sequence[Action | Copied], kind: ActionKind) -> tuple[tuple[str, ...], int]:
    """Keys of the steps that only press, or only let go of, keys; as many as one action may name."""
    keys: tuple[str, ...] = ()
    used = 0
    for step in steps:
        if (
            not isinstance(step, Action)
            or step.kind is not kind
            or len(keys) + len(step.keys) > MAX_DOWN_KEYS
        ):
            break
        keys, used = (*keys, *step.keys), used + 1
    return keys, used
