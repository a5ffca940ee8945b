"""Calls of a computer_use tool in a text, as JSON or XML, in tags or bare.

<tool_call>{"name":"computer_use","arguments":{"action":"left_click","coordinate":[350,720]}}</tool_call>
{"action":"key","keys":["ctrl","s"]}
"""

import json
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import Found, Points, Start
from training.actions.parse.call_blocks import Arguments, call_start, calls_in
from training.actions.parse.computer_use import ACTIONS, action_name, actions_of
from training.actions.parse.thoughts import words_around

TOOLS = ("computer_use", "computer")
INNER = ("arguments", "input", "parameters")


def start(text: str) -> Start | None:
    """Where a call begins; None when there is none."""
    return call_start(text, is_call)


def parse(text: str, points: Points) -> Found:
    """The calls in `text`, in order."""
    calls = calls_in(text, is_call)
    arguments = [one for call in calls for one in arguments_of(call.value)]
    actions = tuple(action for one in arguments for action in actions_of(one, points))
    return Found(actions, words_around(text, calls[0].start, calls[-1].end))


def is_call(value: Any) -> bool:
    """Whether a JSON value is a call of the tool. Raises ActionTextError for one of another tool."""
    return any("action" in one for one in arguments_of(value))


def arguments_of(value: Any) -> list[Arguments]:
    """The arguments of each call in a JSON value: bare, named, or in a list `tool_calls`.

    A function may be named after its action instead of after the tool.
    """
    if isinstance(value, list):
        return [found for one in value for found in arguments_of(one)]
    if not isinstance(value, dict):
        raise ActionTextError("the tool call must be a JSON object")
    if isinstance(value.get("tool_calls"), list):
        return arguments_of(value["tool_calls"])
    if isinstance(value.get("function"), dict):
        return arguments_of(value["function"])
    key = next((key for key in INNER if key in value), None)
    if key is None or "action" in value:
        return [value]
    name = value.get("name", TOOLS[0])
    if isinstance(name, str) and action_name(name) in ACTIONS:
        return [{**_object(value[key]), "action": name}]
    if name not in TOOLS:
        raise ActionTextError(f"unknown tool {str(name)[:40]!r}; the tool is computer_use")
    return [_object(value[key])]


def _object(value: Any) -> Arguments:
    """Arguments, which some write as a text of JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ActionTextError("the text in arguments is no JSON object") from error
    if not isinstance(value, dict):
        raise ActionTextError("arguments must be a JSON object")
    return value
