"""Actions as pyautogui calls: one call for completions, code of one or several for desktops."""

from __future__ import annotations

import re

from training.actions.errors import ActionTextError
from training.actions.pointer_words import PYAUTOGUI_POINTER
from training.actions.typable_text import TYPED_AS_KEYS
from training.actions.write.json_call import WritePoint, direction_and_amount, short_number
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
PASTING = """import pyperclip, subprocess, time
pyperclip.copy({text!r})
assert pyperclip.paste() == {text!r}, 'the clipboard of this desktop does not take the text'
window = "xprop -id $(xprop -root _NET_ACTIVE_WINDOW | grep -o '0x[0-9a-f]*') WM_CLASS"
window = subprocess.run(window, shell=True, capture_output=True, text=True).stdout.lower()
assert 'xterm' not in window, 'xterm pastes no clipboard'
pyautogui.hotkey(*(['ctrl', 'shift', 'v'] if 'terminal' in window else ['ctrl', 'v']))
time.sleep(0.3)"""
"""Text by the clipboard; the pause lets the program fetch it before something else is copied."""
DRAG_S = 0.5
"""Programs miss a drag that arrives at once."""


def pyautogui_call(action: Action, point: WritePoint) -> str:
    """The one call, or control word, that says `action`. Raises ValueError when it needs more."""
    at = _point(action.x, action.y, point)
    match action.kind:
        case ActionKind.TERMINATE if action.text:
            raise ValueError("the pyautogui dialect has no word for an answer")
        case ActionKind.TERMINATE:
            return "FAIL" if action.status == "failure" else "DONE"
        case ActionKind.WAIT:
            return f"time.sleep({short_number(action.seconds)})"
        case ActionKind.TYPE:
            return f"pyautogui.write({action.text or ''!r})"
        case ActionKind.KEY:
            name = "press" if len(action.keys) == 1 else "hotkey"
            return f"pyautogui.{name}({_keys(action)})"
        case ActionKind.SCROLL:
            direction_and_amount(action)
            return _scrolls(action, at)[0]
        case ActionKind.DRAG if at:
            raise ValueError("pyautogui.dragTo starts at the pointer; a drag with a start needs json")
        case ActionKind.DRAG:
            return f"pyautogui.dragTo({_point(action.to_x, action.to_y, point)})"
    return f"pyautogui.{PYAUTOGUI_POINTER[action.kind]}({at})"


def pyautogui_code(action: Action) -> str:
    """Python that does `action` in a desktop whose pixels are the screen's.

    Raises ValueError for `terminate`, which ends the episode instead.
    """
    at = _point(action.x, action.y, _pixels)
    match action.kind:
        case ActionKind.TERMINATE:
            raise ValueError("terminate is said to evaluate, not done")
        case ActionKind.TYPE:
            return _typing(action.text or "")
        case ActionKind.KEY:
            return f"pyautogui.hotkey({_keys(action)})"
        case ActionKind.SCROLL:
            return "; ".join(_scrolls(action, at))
        case ActionKind.DRAG:
            start = f"pyautogui.moveTo({at}); " if at else ""
            end = _point(action.to_x, action.to_y, _pixels)
            return f"{start}pyautogui.dragTo({end}, duration={DRAG_S}, button='left')"
    return pyautogui_call(action, _pixels)


def machine_code(action: Action) -> str:
    """The same for a machine with pyautogui itself, which types and presses ASCII only, and says nothing.

    Other text goes through the clipboard. Raises ActionTextError for a key that it does not have.
    """
    if action.kind is ActionKind.KEY and (missing := [key for key in action.keys if not key.isascii()]):
        raise ActionTextError(f"the keyboard of this desktop has no key {missing[0]!r}")
    text = (action.text or "").replace("\r\n", "\n")
    if action.kind is not ActionKind.TYPE or text.isascii():
        return pyautogui_code(action.model_copy(update={"text": text}) if action.text else action)
    pieces = re.split(f"([{TYPED_AS_KEYS}]+)", text)  # keys stay keys: Tab goes on, Return submits
    return "\n".join(
        _typing(piece) if piece.isascii() else PASTING.format(text=piece) for piece in pieces if piece
    )


def key_of(name: str) -> str:
    """A canonical key name in pyautogui's words."""
    return name if len(name) == 1 else KEYS.get(name, name.lower())


def _keys(action: Action) -> str:
    return ", ".join(repr(key_of(key)) for key in action.keys)


def _pixels(x: int, y: int) -> list[int]:
    return [x, y]


def _point(x: int | None, y: int | None, point: WritePoint) -> str:
    return "" if x is None or y is None else "{}, {}".format(*point(x, y))


def _scrolls(action: Action, at: str) -> list[str]:
    """pyautogui counts up and right as positive; one call for each axis."""
    place = f", {at}" if at else ""
    across = [f"pyautogui.hscroll({action.scroll_x}{place})"] if action.scroll_x else []
    if action.scroll_y or not across:
        return [f"pyautogui.scroll({-action.scroll_y}{place})", *across]
    return across


def _typing(text: str) -> str:
    """`text`, with "<" as shift and comma: pyautogui types ">" instead on many layouts."""
    calls = []
    for index, part in enumerate(text.split("<")):
        if index:
            calls.append("pyautogui.hotkey('shift', ',')")
        if part:
            calls.append(f"pyautogui.write({part!r})")
    return "; ".join(calls) or "pass"
