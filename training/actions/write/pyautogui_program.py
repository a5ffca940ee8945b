"""Actions as Python that a desktop runs: pyautogui calls, one after another."""

import re

from training.actions.errors import ActionTextError
from training.actions.typable_text import TYPED_AS_KEYS
from training.actions.write.pyautogui_call import key_calls, key_of, point_text, scroll_calls
from training.actions.write.pyautogui_lines import held, pyautogui_lines
from training.contracts.types import Action, ActionKind

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


def pyautogui_code(action: Action) -> str:
    """Python that does `action` in a desktop whose pixels are the screen's.

    Raises ValueError for `terminate`, which ends the episode instead.
    """
    plain = action.model_copy(update={"modifiers": ()})
    return "; ".join(held(action.modifiers, _calls(plain)))


def machine_code(action: Action) -> str:
    """The same for a machine with pyautogui itself, which types and presses ASCII only, and says nothing.

    Other text goes through the clipboard. Raises ActionTextError for a key that it does not have.
    """
    if missing := [key for key in action.keys if not key.isascii()]:
        raise ActionTextError(f"the keyboard of this desktop has no key {missing[0]!r}")
    text = (action.text or "").replace("\r\n", "\n")
    if action.kind is ActionKind.PASTE:
        return PASTING.format(text=text)
    if action.kind is not ActionKind.TYPE or text.isascii():
        return pyautogui_code(action.model_copy(update={"text": text}) if action.text else action)
    pieces = re.split(f"([{TYPED_AS_KEYS}]+)", text)  # keys stay keys: Tab goes on, Return submits
    return "\n".join(
        _typing(piece) if piece.isascii() else PASTING.format(text=piece) for piece in pieces if piece
    )


def _calls(action: Action) -> list[str]:
    at = point_text(action.x, action.y, _pixels)
    match action.kind:
        case ActionKind.TERMINATE:
            raise ValueError("terminate is said to evaluate, not done")
        case ActionKind.TYPE:
            return [_typing(action.text or "")]
        case ActionKind.KEY if not action.seconds:
            return _chord_calls(action)
        case ActionKind.SCROLL:
            return scroll_calls(action, at)
        case ActionKind.DRAG:
            start = [f"pyautogui.moveTo({at})"] if at else []
            end = point_text(action.to_x, action.to_y, _pixels)
            return [*start, f"pyautogui.dragTo({end}, duration={DRAG_S}, button={action.button!r})"]
    return pyautogui_lines(action, _pixels)


def _chord_calls(action: Action) -> list[str]:
    if action.presses == 1:
        return [f"pyautogui.hotkey({', '.join(repr(key_of(key)) for key in action.keys)})"]
    last = key_calls(action.model_copy(update={"keys": action.keys[-1:]}))
    return held(action.keys[:-1], last)


def _pixels(x: int, y: int) -> list[int]:
    return [x, y]


def _typing(text: str) -> str:
    """`text`, with "<" as shift and comma: pyautogui types ">" instead on many layouts."""
    calls = []
    for index, part in enumerate(text.split("<")):
        if index:
            calls.append("pyautogui.hotkey('shift', ',')")
        if part:
            calls.append(f"pyautogui.write({part!r})")
    return "; ".join(calls) or "pass"
