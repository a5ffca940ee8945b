"""Messages of a foreign record -> turns: `training.actions.parse`, and the spellings that others use."""

import ast
import json
import re
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import Points
from training.actions.parse.computer_use import ACTIONS, action_name, action_of
from training.actions.parse_completion import parse_completion
from training.actions.pointer_words import JSON_POINTER
from training.contracts.config import CoordinateSpace
from training.contracts.types import (
    Action,
    ActionKind,
    Completion,
    Observation,
    ParsedCompletion,
    Source,
    Turn,
)
from webapp.lib.request_values import read_json
from webapp.replay.formats.conversation import IMAGE, Message, ReadProblem
from webapp.replay.formats.images import StoredImage
from webapp.replay.formats.observed_texts import Keep, read_sections

TAGS = ("tool_call", "answer", "action")
"""Searched one after the other: a pattern with a tag at both ends takes the square of the length."""
CALL = re.compile(r"pyautogui\.\w+\(")
TASK_PART = re.compile(r"\[Task\]\s*(.*?)(?:\n\s*\n\[|\Z)", re.DOTALL)
PIXELS = (2, 2)
"""Source and target of coordinates that are pixels already: equal grids change nothing."""


def turns_of_messages(messages: list[Message], images: list[StoredImage], keep: Keep) -> list[Turn]:
    """One turn per assistant message, on the screen that was shown last, or on none. Raises ReadProblem."""
    turns: list[Turn] = []
    waiting = iter(images)
    screen: StoredImage | None = None
    text = ""
    for message in messages:
        for _ in message.images:
            screen = next(waiting)
        if message.role == "user":
            text = message.text.replace(IMAGE, "").strip()
        elif message.role == "assistant":
            turn = read_turn(len(turns), screen, text, message.text, f"messages[{message.place}]")
            read = {name: keep(raw) for name, raw in read_sections(text).items()}
            seen = turn.observation.model_copy(update=read)
            changes = {"is_context": not message.is_learned, "observation": seen}
            turns.append(turn.model_copy(update=changes))
            text = ""
    if not turns:
        raise ReadProblem("messages", "no assistant message")
    return turns


def instruction_of(messages: list[Message]) -> str:
    """What the first message of the user asks."""
    first = next((message.text for message in messages if message.role == "user"), "")
    found = TASK_PART.search(first)
    return (found.group(1) if found else first.replace(IMAGE, "")).strip()


BETWEEN_CALLS = re.compile(r"\s*</tool_call>\s*<tool_call>\s*", re.IGNORECASE)
MOST_ACTIONS = 16
"""Of one message, as `prompt.actions_per_turn` may allow."""


def read_turn(index: int, screen: StoredImage | None, text: str, content: str, where: str) -> Turn:
    instruction = TASK_PART.search(text)
    parsed = read_action(content, where)
    return Turn(
        index=index,
        source=Source.HUMAN,
        observation=Observation(
            sha256=screen.sha256 if screen else "",
            width=screen.width if screen else 0,
            height=screen.height if screen else 0,
            text=instruction.group(1).strip() if instruction else "",
        ),
        completion=Completion(text=content),
        action=parsed.action,
        earlier_actions=parsed.actions[:-1],
        dialect=parsed.dialect,
    )


def read_action(content: str, where: str) -> ParsedCompletion:
    """The action of an assistant message, its coordinates in screen pixels. Raises ReadProblem."""
    tagged = _closing_tag(content)
    if tagged is None and (parsed := _parsed(content)).action is not None:
        return parsed
    tagged = tagged or _first_tag(content)
    body = (tagged[1] if tagged else content).strip()
    if body.startswith("{"):
        try:
            calls = [from_arguments(load_arguments(call, where)) for call in _calls_in(body)]
            return ParsedCompletion(actions=tuple(calls), dialect="json")
        except ActionTextError as error:
            raise ReadProblem(f"{where}.content", str(error)) from error
    is_keyboard_tag = tagged is not None and tagged[0] == "action"
    parsed = _parsed(content if is_keyboard_tag else body)
    if parsed.action is None and not is_keyboard_tag:
        parsed = _parsed(first_call(content, where))
    if parsed.action is None:
        raise ReadProblem(f"{where}.content", str(parsed.error))
    return parsed


def _calls_in(body: str) -> list[str]:
    """The JSON objects between the tags of one call after another; `body` itself where it is no such."""
    calls, place = [], 0
    while body.startswith("{", place):
        try:
            _, end = json.JSONDecoder().raw_decode(body, place)
        except (ValueError, RecursionError):
            return [body]
        calls.append(body[place:end])
        between = BETWEEN_CALLS.match(body, end)
        place = between.end() if between else end
    return calls if place == len(body) else [body]


def _closing_tag(content: str) -> tuple[str, str] | None:
    """(tag, what is in it) of the tag that ends the message, from the first line that opens it.

    What the agent types may hold tags, too.
    """
    text = content.rstrip()
    for tag in TAGS:
        if text[-len(tag) - 3 :].lower() == f"</{tag}>":
            opened = re.search(rf"^<({tag})>", text, re.IGNORECASE | re.MULTILINE)
            return (opened[1], text[opened.end() : -len(tag) - 3]) if opened else None
    return None


def _first_tag(content: str) -> tuple[str, str] | None:
    """(tag, what is in it) of the first tag that is closed."""
    found = []
    for tag in TAGS:
        opened = re.search(rf"<({tag})>", content, re.IGNORECASE)
        closed = re.compile(rf"</{tag}>", re.IGNORECASE).search(content, opened.end()) if opened else None
        if opened and closed:
            found.append((opened.start(), opened[1], content[opened.end() : closed.start()]))
    return min(found)[1:] if found else None


def _parsed(text: str) -> ParsedCompletion:
    return parse_completion(text, space=CoordinateSpace.SCREEN, screen=PIXELS, most=MOST_ACTIONS)


def load_arguments(body: str, where: str) -> dict[str, Any]:
    data = read_json(body, f"{where}.content: the tool call")
    arguments = data.get("arguments", data) if isinstance(data, dict) else None
    if not isinstance(arguments, dict):
        raise ReadProblem(f"{where}.content", "the tool call has no arguments")
    return arguments


def from_arguments(arguments: dict[str, Any]) -> Action:
    """Arguments of `computer_use` -> Action, arguments that we do not know left out.

    Foreign names and defaults count: a click without a point is where the pointer is. Raises ActionTextError.
    """
    name = action_name(str(arguments.get("action", "")))
    if name not in ACTIONS:
        raise ActionTextError(f"unknown action {name!r}")
    described = {"text"} if name in JSON_POINTER.values() else set()  # what others call the target
    allowed = ACTIONS[name][1] - described
    known = {key: arguments[key] for key in allowed if arguments.get(key) is not None}
    if name == "mouse_move" and not known:
        return Action(kind=ActionKind.MOVE)
    if name == "scroll" and not known.keys() & {"pixels", "scroll_direction"}:
        known.setdefault("direction", "down")
    if name == "terminate" and known.get("status", "success") != "success":
        known["status"] = "failure"
    return action_of({"action": name, **known}, Points(PIXELS, PIXELS))


def first_call(content: str, where: str) -> str:
    """The one pyautogui call among other words; code is parsed, never run. Raises ReadProblem."""
    found = CALL.search(content)
    if found is None:
        raise ReadProblem(f"{where}.content", "holds no tool call and no pyautogui call")
    text = content[found.start() :]
    for end in (place + 1 for place, letter in enumerate(text[:4000]) if letter == ")"):
        try:
            ast.parse(text[:end], mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if CALL.search(text[end:]):
            raise ReadProblem(f"{where}.content", "more than one action; write one per turn")
        return text[:end]
    raise ReadProblem(f"{where}.content", "the pyautogui call does not end")
