"""Actions as the text a model writes: the inverse of `training.actions.parse`. Torch-free.

`format_action` renders oracle demonstrations, and what it writes parses back to the same action
(up to the rounding of the coordinate space).
"""

from __future__ import annotations

import json
from typing import Any

from training.actions.coordinates import PERMILLE_STEP, Size, convert_point, space_size
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind

JSON_NAMES: dict[ActionKind, str] = {
    ActionKind.CLICK: "left_click",
    ActionKind.DOUBLE_CLICK: "double_click",
    ActionKind.TRIPLE_CLICK: "triple_click",
    ActionKind.RIGHT_CLICK: "right_click",
    ActionKind.MIDDLE_CLICK: "middle_click",
    ActionKind.MOVE: "mouse_move",
    ActionKind.DRAG: "left_click_drag",
    ActionKind.SCROLL: "scroll",
    ActionKind.TYPE: "type",
    ActionKind.KEY: "key",
    ActionKind.WAIT: "wait",
    ActionKind.TERMINATE: "terminate",
}
PYAUTOGUI_NAMES: dict[ActionKind, str] = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "doubleClick",
    ActionKind.TRIPLE_CLICK: "tripleClick",
    ActionKind.RIGHT_CLICK: "rightClick",
    ActionKind.MIDDLE_CLICK: "middleClick",
    ActionKind.MOVE: "moveTo",
}
MOUSE_VERBS: dict[ActionKind, str] = {
    ActionKind.CLICK: "click",
    ActionKind.DOUBLE_CLICK: "doubleclick",
    ActionKind.RIGHT_CLICK: "rightclick",
    ActionKind.MOVE: "move",
}


def format_action(
    action: Action,
    dialect: str = "json",
    space: CoordinateSpace = CoordinateSpace.PERMILLE,
    screen: Size = (512, 384),
    image: Size | None = None,
) -> str:
    """`action` (screen pixels) as a completion in `dialect`; "auto" writes JSON.

    `image` is the resized image's size, needed only for the resized space.
    Raises ValueError when the dialect cannot say the action (the keyboard dialect has no pointer).
    """
    if dialect in ("json", "auto"):
        return json.dumps(
            json_arguments(action, space, screen, image), ensure_ascii=False, separators=(",", ":")
        )
    if dialect == "pyautogui":
        return _pyautogui(action, space, screen, image)
    if dialect == "keyboard":
        return _keyboard(action)
    if dialect == "keyboard-mouse":
        return _keyboard_mouse(action, space, screen, image)
    raise ValueError(f"unknown dialect {dialect!r}; use json, pyautogui, keyboard or keyboard-mouse")


def completion_text(
    action: Action, screen: Size, prompt: PromptConfig | None = None, image: Size | None = None
) -> str:
    """The completion that a policy of `prompt` would write to do `action`."""
    prompt = prompt or PromptConfig()
    return format_action(action, prompt.dialect, prompt.coordinate_space, screen, image)


def model_point(x: int, y: int, space: CoordinateSpace, screen: Size, image: Size | None = None) -> list[int]:
    """Screen pixels -> the numbers a model writes; permille is rounded to PERMILLE_STEP."""
    point = convert_point((x, y), screen, space_size(space, screen, image))
    if space is CoordinateSpace.PERMILLE:
        return [min(1000, round(value / PERMILLE_STEP) * PERMILLE_STEP) for value in point]
    return list(point)


def json_arguments(
    action: Action, space: CoordinateSpace, screen: Size, image: Size | None = None
) -> dict[str, Any]:
    """The arguments of the computer_use tool call that says `action`."""
    arguments: dict[str, Any] = {"action": JSON_NAMES[action.kind]}
    if action.kind is ActionKind.DRAG:
        return arguments | _drag_arguments(action, space, screen, image)
    if action.x is not None and action.y is not None:
        arguments["coordinate"] = model_point(action.x, action.y, space, screen, image)
    match action.kind:
        case ActionKind.TYPE:
            arguments["text"] = action.text or ""
        case ActionKind.KEY:
            arguments["keys"] = list(action.keys)
        case ActionKind.SCROLL:
            arguments |= _scroll_arguments(action)
        case ActionKind.WAIT:
            arguments["time"] = _short(action.seconds)
        case ActionKind.TERMINATE:
            arguments["status"] = action.status
    return arguments


def _drag_arguments(
    action: Action, space: CoordinateSpace, screen: Size, image: Size | None
) -> dict[str, Any]:
    if action.to_x is None or action.to_y is None:
        raise ValueError("a drag needs to_x and to_y")
    arguments: dict[str, Any] = {}
    if action.x is not None and action.y is not None:
        arguments["start_coordinate"] = model_point(action.x, action.y, space, screen, image)
    return arguments | {"coordinate": model_point(action.to_x, action.to_y, space, screen, image)}


def _scroll_arguments(action: Action) -> dict[str, Any]:
    if action.scroll_x:
        return {"direction": "right" if action.scroll_x > 0 else "left", "amount": abs(action.scroll_x)}
    return {"direction": "down" if action.scroll_y >= 0 else "up", "amount": abs(action.scroll_y)}


def _short(seconds: float) -> float | int:
    return int(seconds) if seconds == int(seconds) else seconds


def _pyautogui(action: Action, space: CoordinateSpace, screen: Size, image: Size | None) -> str:
    def point(x: int | None, y: int | None) -> str:
        return "" if x is None or y is None else "{}, {}".format(*model_point(x, y, space, screen, image))

    at = point(action.x, action.y)
    match action.kind:
        case ActionKind.TERMINATE:
            return "DONE" if action.status == "success" else "FAIL"
        case ActionKind.WAIT:
            return f"time.sleep({_short(action.seconds)})"
        case ActionKind.TYPE:
            return f"pyautogui.write({action.text or ''!r})"
        case ActionKind.KEY:
            name = "press" if len(action.keys) == 1 else "hotkey"
            return f"pyautogui.{name}({', '.join(repr(key) for key in action.keys)})"
        case ActionKind.SCROLL:
            name, notches = ("hscroll", action.scroll_x) if action.scroll_x else ("scroll", -action.scroll_y)
            return f"pyautogui.{name}({notches}{', ' + at if at else ''})"
        case ActionKind.DRAG if at:
            raise ValueError("pyautogui.dragTo starts at the pointer; a drag with a start needs json")
        case ActionKind.DRAG:
            return f"pyautogui.dragTo({point(action.to_x, action.to_y)})"
    return f"pyautogui.{PYAUTOGUI_NAMES[action.kind]}({at})"


def _keyboard_mouse(action: Action, space: CoordinateSpace, screen: Size, image: Size | None) -> str:
    def words(*points: tuple[int | None, int | None]) -> str:
        if any(x is None or y is None for x, y in points):
            raise ValueError(f"the keyboard-mouse dialect needs every point of a {action.kind.value}")
        found = [model_point(int(x or 0), int(y or 0), space, screen, image) for x, y in points]
        return " ".join(str(number) for point in found for number in point)

    match action.kind:
        case ActionKind.DRAG:
            return f"<action>drag {words((action.x, action.y), (action.to_x, action.to_y))}</action>"
        case ActionKind.SCROLL if action.x is None:
            arguments = _scroll_arguments(action)
            return f"<action>scroll {arguments['direction']} {arguments['amount']}</action>"
    verb = MOUSE_VERBS.get(action.kind)
    return f"<action>{verb} {words((action.x, action.y))}</action>" if verb else _keyboard(action)


def _keyboard(action: Action) -> str:
    if "</action>" in (action.text or ""):
        raise ValueError("the keyboard dialects cannot type their own closing tag")
    match action.kind:
        case ActionKind.TERMINATE if action.status == "success":
            return "<done/>"
        case ActionKind.WAIT:
            return f"<action>wait {_short(action.seconds)}</action>"
        case ActionKind.KEY:
            return f"<action>sendkey {'-'.join(action.keys)}</action>"
        case ActionKind.TYPE if (action.text or "").endswith("\n"):
            return f"<action>typeline {(action.text or '')[:-1]}</action>"
        case ActionKind.TYPE:
            return f"<action>type {action.text or ''}</action>"
    raise ValueError(f"the keyboard dialect has no word for {action.kind.value}")
