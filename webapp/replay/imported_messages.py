"""Messages of a foreign record -> turns. The tool call, or one pyautogui call; nothing is ever evaluated."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pydantic import ValidationError

from training.contracts.types import Action, ActionKind, Completion, Observation, Source, Turn
from webapp.replay.import_images import StoredImage

TOOL_CALL = re.compile(r"<(tool_call|answer|action)>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
CALL = re.compile(r"pyautogui\.(\w+)\(")
TASK_PART = re.compile(r"\[Task\]\s*(.*?)(?:\n\s*\n\[|\Z)", re.DOTALL)
IMAGE = "<image>"
POINTED = {
    "left_click": ActionKind.CLICK,
    "click": ActionKind.CLICK,
    "right_click": ActionKind.RIGHT_CLICK,
    "rightclick": ActionKind.RIGHT_CLICK,
    "double_click": ActionKind.DOUBLE_CLICK,
    "doubleclick": ActionKind.DOUBLE_CLICK,
    "triple_click": ActionKind.TRIPLE_CLICK,
    "tripleclick": ActionKind.TRIPLE_CLICK,
    "middle_click": ActionKind.MIDDLE_CLICK,
    "move": ActionKind.MOVE,
    "moveto": ActionKind.MOVE,
}


class ReadProblem(ValueError):
    """Raised when a field of a line cannot be read."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}" if where else what)


def turns_of_messages(messages: Any, images: list[StoredImage]) -> list[Turn]:
    """One turn per assistant message, on the screen that was shown last. Raises ReadProblem."""
    if not isinstance(messages, list) or not messages:
        raise ReadProblem("messages", "missing or not a list")
    turns: list[Turn] = []
    waiting = list(images)
    screen, text = None, ""
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        role, content = read_message(message, where)
        if role == "user":
            for _ in range(content.count(IMAGE)):
                if not waiting:
                    raise ReadProblem(where, "has more <image> marks than there are images")
                screen = waiting.pop(0)
            text = content.replace(IMAGE, "").strip()
        elif role == "assistant":
            if screen is None:
                raise ReadProblem(where, "an action before the first screenshot")
            turns.append(read_turn(len(turns), screen, text, content, where))
            text = ""
    if waiting:
        raise ReadProblem("images", f"{len(waiting)} more than the messages have <image> marks")
    if not turns:
        raise ReadProblem("messages", "no assistant message")
    return turns


def read_message(message: Any, where: str) -> tuple[str, str]:
    if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
        raise ReadProblem(f"{where}.role", "not system, user or assistant")
    if not isinstance(message.get("content"), str):
        raise ReadProblem(f"{where}.content", "not a string")
    return message["role"], message["content"]


def read_turn(index: int, screen: StoredImage, text: str, content: str, where: str) -> Turn:
    instruction = TASK_PART.search(text)
    return Turn(
        index=index,
        source=Source.HUMAN,
        observation=Observation(
            sha256=screen.sha256,
            width=screen.width,
            height=screen.height,
            text=instruction.group(1).strip() if instruction else "",
        ),
        completion=Completion(text=content),
        action=read_action(content, where),
        dialect="json" if TOOL_CALL.search(content) else "pyautogui",
    )


def read_action(content: str, where: str) -> Action:
    """The action of an assistant message. Raises ReadProblem."""
    tagged = TOOL_CALL.search(content)
    body = (tagged.group(2) if tagged else content).strip()
    if body.startswith("{"):
        return from_arguments(load_object(body, where), where)
    word = body.upper()
    if word in ("DONE", "FAIL"):
        return Action(kind=ActionKind.TERMINATE, status="success" if word == "DONE" else "failure")
    if word == "WAIT":
        return Action(kind=ActionKind.WAIT, seconds=1.0)
    return from_call(content, where)


def load_object(body: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError as error:
        raise ReadProblem(f"{where}.content", f"the tool call is not JSON ({error})") from error
    arguments = data.get("arguments", data) if isinstance(data, dict) else None
    if not isinstance(arguments, dict):
        raise ReadProblem(f"{where}.content", "the tool call has no arguments")
    return arguments


def from_arguments(data: dict[str, Any], where: str) -> Action:
    """Arguments of `computer_use` -> Action."""
    name = str(data.get("action", "")).lower()
    point = pixel(data.get("coordinate"), where)
    values: dict[str, Any]
    if name in POINTED:
        values = {"kind": POINTED[name], **point}
    elif name == "type":
        values = {"kind": ActionKind.TYPE, "text": data.get("text", "")}
    elif name == "key":
        keys = data.get("keys", ())
        values = {"kind": ActionKind.KEY, "keys": tuple([keys] if isinstance(keys, str) else keys)}
    elif name == "scroll":
        amount = data.get("amount", 3)
        sign = 1 if data.get("direction", "down") == "down" else -1
        values = {"kind": ActionKind.SCROLL, "scroll_y": sign * abs(int(amount)), **point}
    elif name == "left_click_drag":
        start = pixel(data.get("start_coordinate") or data.get("coordinate"), where)
        end = pixel(data.get("end_coordinate"), where)
        values = {"kind": ActionKind.DRAG, **start, "to_x": end.get("x"), "to_y": end.get("y")}
    elif name == "wait":
        values = {"kind": ActionKind.WAIT, "seconds": data.get("time", 1.0)}
    elif name == "terminate":
        status = "success" if data.get("status", "success") == "success" else "failure"
        values = {"kind": ActionKind.TERMINATE, "status": status}
    else:
        raise ReadProblem(f"{where}.content", f"unknown action {name!r}")
    return build(values, where)


def from_call(content: str, where: str) -> Action:
    """The first pyautogui call with literal arguments -> Action."""
    found = CALL.search(content)
    if found is None:
        raise ReadProblem(f"{where}.content", "holds no tool call and no pyautogui call")
    name, args, named = literal_call(content[found.start() :], where)
    low = name.lower()
    if low == "click" and named.get("button") in ("middle", "right"):
        low = f"{named['button']}_click"
    if low in POINTED:
        return build({"kind": POINTED[low], **pixel(args[:2] or None, where)}, where)
    if low in ("write", "typewrite") and args:
        return build({"kind": ActionKind.TYPE, "text": args[0]}, where)
    if low in ("press", "hotkey") and args:
        keys = args[0] if isinstance(args[0], list) else args
        return build({"kind": ActionKind.KEY, "keys": tuple(keys)}, where)
    if low == "scroll" and args:
        return build({"kind": ActionKind.SCROLL, "scroll_y": -int(args[0])}, where)
    raise ReadProblem(f"{where}.content", f"pyautogui.{name} is not an action that can be read")


def literal_call(text: str, where: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Name and literal arguments of the call at the start of `text`; code is parsed, never run."""
    for end in (i + 1 for i, letter in enumerate(text[:4000]) if letter == ")"):
        try:
            node = ast.parse(text[:end], mode="eval").body
        except SyntaxError:
            continue
        try:
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            args = [ast.literal_eval(arg) for arg in node.args]
            named = {str(item.arg): ast.literal_eval(item.value) for item in node.keywords}
        except (ValueError, AssertionError) as error:
            raise ReadProblem(
                f"{where}.content", "arguments of the pyautogui call are not literal"
            ) from error
        return node.func.attr, args, named
    raise ReadProblem(f"{where}.content", "the pyautogui call does not end")


def pixel(value: Any, where: str) -> dict[str, int]:
    """{"x", "y"} of a pair of numbers; empty without one."""
    if value is None:
        return {}
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or not all(isinstance(part, int | float) for part in value):
        raise ReadProblem(f"{where}.content", f"not a coordinate: {value!r}")
    return {"x": round(value[0]), "y": round(value[1])}


def build(values: dict[str, Any], where: str) -> Action:
    try:
        return Action.model_validate(values)
    except (ValidationError, TypeError, ValueError) as error:
        raise ReadProblem(f"{where}.content", f"the action cannot be read: {values!r}") from error
