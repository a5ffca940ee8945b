"""Actions in a few words, and as signatures that are equal for the same deed.

Pure functions over their stored JSON.
"""

from collections.abc import Sequence
from typing import Any, Protocol

CLICK_WORDS = {
    "click": "Click",
    "double_click": "Double click",
    "triple_click": "Triple click",
    "right_click": "Right click",
    "middle_click": "Middle click",
    "move": "Move",
    "mouse_down": "Button down",
    "mouse_up": "Button up",
}
KEY_WORDS = {"key": "Press", "key_down": "Keys down", "key_up": "Keys up"}
TEXT_WORDS = {"type": "Type", "paste": "Paste"}
KEY_SYMBOLS = {
    "return": "⏎ Enter",
    "enter": "⏎ Enter",
    "tab": "⇥ Tab",
    "backspace": "⌫",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "space": "Space",
    "escape": "Esc",
    "ctrl": "Ctrl",
    "alt": "Alt",
    "shift": "⇧ Shift",
    "super": "Super",
    "page_up": "PgUp",
    "page_down": "PgDn",
}
GRID_PX = 24
"""About the height of a menu row."""


class Acted(Protocol):
    """A turn, as far as its actions go."""

    @property
    def action(self) -> Any: ...

    @property
    def earlier_actions(self) -> Any: ...


def actions_of(turn: Acted) -> list[dict[str, Any]]:
    """All of its completion that were tried, in order, as JSON."""
    return [*(turn.earlier_actions or ()), turn.action] if turn.action else []


def actions_caption(actions: Sequence[dict[str, Any]]) -> str:
    """All actions of a turn in words; "" for none."""
    return ", then ".join(action_caption(action) for action in actions)


def action_caption(action: dict[str, Any]) -> str:
    """The action in a few words: "Click 120, 44", "Ctrl + Click 3, 4", "Type “hello”", "Scroll down 3"."""
    held = "".join(f"{cap} + " for cap in caps_of(action.get("modifiers") or ()))
    return f"{held}{_plain_caption(action)}{_button_and_count(action)}"


def _button_and_count(action: dict[str, Any]) -> str:
    words = f" ({action['button']} button)" if action.get("button", "left") != "left" else ""
    if action.get("presses", 1) > 1:
        words += f" × {action['presses']}"
    if action.get("kind") == "key" and action.get("seconds"):
        words += f" for {action['seconds']:g} s"
    return words


def _plain_caption(action: dict[str, Any]) -> str:
    kind = action.get("kind", "")
    if kind in CLICK_WORDS:
        return f"{CLICK_WORDS[kind]} {point_words(action.get('x'), action.get('y'))}"
    if kind in TEXT_WORDS:
        return f"{TEXT_WORDS[kind]} “{action.get('text') or ''}”"
    if kind in KEY_WORDS:
        return f"{KEY_WORDS[kind]} {' + '.join(caps_of(action.get('keys') or ()))}"
    if kind == "drag":
        start, end = (
            point_words(action.get("x"), action.get("y")),
            point_words(action.get("to_x"), action.get("to_y")),
        )
        return f"Drag {start} → {end}"
    if kind == "scroll":
        return f"Scroll {scroll_words(action)}"
    if kind == "wait":
        return f"Wait {action.get('seconds') or 0:g} s"
    if kind == "terminate":
        return f"Terminate: {action.get('status') or 'success'}"
    return kind


def point_words(x: int | None, y: int | None) -> str:
    return "at pointer" if x is None or y is None else f"{x}, {y}"


def scroll_words(action: dict[str, Any]) -> str:
    """ "down 3", "left 2", both when both are set."""
    across, down = action.get("scroll_x") or 0, action.get("scroll_y") or 0
    words = []
    if down:
        words.append(f"{'down' if down > 0 else 'up'} {abs(down)}")
    if across:
        words.append(f"{'right' if across > 0 else 'left'} {abs(across)}")
    return ", ".join(words) or "0"


def key_caps(action: dict[str, Any]) -> list[str]:
    """Labels of the key caps of a chord that is pressed once; empty for all else, which words say."""
    is_tap = action.get("kind") == "key" and not action.get("seconds") and action.get("presses", 1) == 1
    return caps_of(action.get("keys") or ()) if is_tap else []


def caps_of(keys: Sequence[str]) -> list[str]:
    return [KEY_SYMBOLS.get(key.lower(), key if len(key) > 1 else key.upper()) for key in keys]


def turn_signature(actions: Sequence[dict[str, Any]]) -> str:
    """Of all that a turn did; "-" for nothing."""
    return " ".join(action_signature(action) for action in actions) or "-"


def action_signature(action: dict[str, Any] | None) -> str:
    """An action with its point on a coarse grid: equal for clicks that land on the same widget."""
    if not action:
        return "-"
    kind = action.get("kind", "")
    point = ""
    if action.get("x") is not None and action.get("y") is not None:
        point = f"@{action['x'] // GRID_PX},{action['y'] // GRID_PX}"
    words = action.get("text") or "+".join([*(action.get("modifiers") or ()), *(action.get("keys") or ())])
    return f"{kind}{point}:{words}:{action.get('scroll_y') or 0}"
