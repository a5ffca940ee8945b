"""Actions as the text that DesktopEnv runs in the desktop: Python for pyautogui, or WAIT."""

from __future__ import annotations

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
DRAG_S = 0.5
"""Programs miss a drag that arrives at once."""
CLICKS = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "doubleClick",
    ActionKind.TRIPLE_CLICK: "tripleClick",
    ActionKind.RIGHT_CLICK: "rightClick",
    ActionKind.MIDDLE_CLICK: "middleClick",
    ActionKind.MOVE: "moveTo",
}


def python_of(action: Action) -> str:
    """What does `action` (screen pixels) in the desktop; "WAIT" for a wait.

    Raises ValueError for `terminate`, which ends the episode instead.
    """
    match action.kind:
        case ActionKind.WAIT:
            return "WAIT"
        case ActionKind.TYPE:
            return typing(action.text or "")
        case ActionKind.KEY:
            return f"pyautogui.hotkey({', '.join(repr(key_of(key)) for key in action.keys)})"
        case ActionKind.SCROLL:
            return scrolling(action)
        case ActionKind.DRAG:
            start = f"pyautogui.moveTo({at(action.x, action.y)}); " if action.x is not None else ""
            end = at(action.to_x, action.to_y)
            return f"{start}pyautogui.dragTo({end}, duration={DRAG_S}, button='left')"
        case ActionKind.TERMINATE:
            raise ValueError("terminate is said to evaluate, not done")
    return f"pyautogui.{CLICKS[action.kind]}({at(action.x, action.y)})"


def at(x: int | None, y: int | None) -> str:
    return "" if x is None or y is None else f"{x}, {y}"


def key_of(name: str) -> str:
    """A canonical key name in pyautogui's words."""
    return name if len(name) == 1 else KEYS.get(name, name.lower())


def scrolling(action: Action) -> str:
    """pyautogui counts up and right as positive."""
    point = f", {at(action.x, action.y)}" if action.x is not None else ""
    parts = []
    if action.scroll_y:
        parts.append(f"pyautogui.scroll({-action.scroll_y}{point})")
    if action.scroll_x:
        parts.append(f"pyautogui.hscroll({action.scroll_x}{point})")
    return "; ".join(parts) or "pass"


def typing(text: str) -> str:
    """`text`, with "<" as shift and comma: pyautogui types ">" instead on many layouts."""
    calls = []
    for index, part in enumerate(text.split("<")):
        if index:
            calls.append("pyautogui.hotkey('shift', ',')")
        if part:
            calls.append(f"pyautogui.write({part!r})")
    return "; ".join(calls) or "pass"
