"""Actions as the one pyautogui call of a completion."""

from training.actions.pointer_words import PYAUTOGUI_POINTER, SINGLE_BUTTONS
from training.actions.write.json_call import WritePoint, direction_and_amount, short_number
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind

KEYS = {
    "Return": "enter",
    "Escape": "esc",
    "Page_Up": "pageup",
    "Page_Down": "pagedown",
    "Caps_Lock": "capslock",
    "Num_Lock": "numlock",
    "Scroll_Lock": "scrolllock",
    "Print": "printscreen",
    "Menu": "apps",
    "super": "win",
}
"""Canonical names that pyautogui calls otherwise; the others it takes in lower case."""
ONE_KEY = frozenset({ActionKind.KEY_DOWN, ActionKind.KEY_UP})


def pyautogui_call(action: Action, point: WritePoint) -> str:
    """The one call, or control word, that says `action`. Raises ValueError when it needs more."""
    _require_one_call(action)
    at = point_text(action.x, action.y, point)
    match action.kind:
        case ActionKind.TERMINATE:
            return "FAIL" if action.status == "failure" else "DONE"
        case ActionKind.WAIT:
            return f"time.sleep({short_number(action.seconds)})"
        case ActionKind.TYPE:
            return f"pyautogui.write({action.text or ''!r})"
        case ActionKind.KEY | ActionKind.KEY_DOWN | ActionKind.KEY_UP:
            return key_calls(action)[0]
        case ActionKind.SCROLL:
            direction_and_amount(action)
            return scroll_calls(action, at)[0]
        case ActionKind.DRAG if at:
            raise ValueError("pyautogui.dragTo starts at the pointer; a drag with a start needs json")
        case ActionKind.DRAG:
            return _call("dragTo", point_text(action.to_x, action.to_y, point), _button(action))
    return pointer_call(action, at)


def _require_one_call(action: Action) -> None:
    """Raises ValueError for what pyautogui says by several calls, or has no call for."""
    require_words(action, "pyautogui", "button", "presses")
    if action.kind is ActionKind.PASTE or (action.kind is ActionKind.TERMINATE and action.text):
        raise ValueError(f"the pyautogui dialect has no word for this {action.kind.value}")
    if len(action.keys) > 1 and (action.kind in ONE_KEY or action.presses > 1):
        raise ValueError(f"pyautogui has no one call for this {action.kind.value} of several keys")


def pointer_call(action: Action, at: str) -> str:
    """A click, a move, or a button that goes down or up."""
    if action.presses > 1:
        which = SINGLE_BUTTONS[action.kind]
        button = "" if which == "left" else f"button={which!r}"
        return _call("click", at, f"clicks={action.presses}", button)
    return _call(PYAUTOGUI_POINTER[action.kind], at, _button(action))


def key_calls(action: Action) -> list[str]:
    """The calls that press, hold or let go of its keys, in order."""
    keys = [repr(key_of(key)) for key in action.keys]
    if action.kind in ONE_KEY:
        name = "keyDown" if action.kind is ActionKind.KEY_DOWN else "keyUp"
        return [_call(name, key) for key in keys]
    if action.presses > 1 and len(keys) == 1:
        return [_call("press", keys[0], f"presses={action.presses}")]
    return [_call("press" if len(keys) == 1 else "hotkey", *keys)]


def _call(name: str, *arguments: str) -> str:
    return f"pyautogui.{name}({', '.join(argument for argument in arguments if argument)})"


def _button(action: Action) -> str:
    return "" if action.button == "left" else f"button={action.button!r}"


def key_of(name: str) -> str:
    """A canonical key name in pyautogui's words."""
    return name if len(name) == 1 else KEYS.get(name, name.lower())


def point_text(x: int | None, y: int | None, point: WritePoint) -> str:
    """Its two numbers; "" where the pointer is."""
    return "" if x is None or y is None else "{}, {}".format(*point(x, y))


def scroll_calls(action: Action, at: str) -> list[str]:
    """pyautogui counts up and right as positive; one call for each axis."""
    place = f", {at}" if at else ""
    across = [f"pyautogui.hscroll({action.scroll_x}{place})"] if action.scroll_x else []
    if action.scroll_y or not across:
        return [f"pyautogui.scroll({-action.scroll_y}{place})", *across]
    return across
