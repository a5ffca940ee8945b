"""Calls of a tool in a text: JSON or XML between <tool_call> tags, or bare; the call decides, not its words.

A call at the beginning of a line counts before one within a line, and one in tags before a bare one: what
thoughts quote never spoils a turn. What can be read counts before what cannot.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import Start
from training.actions.parse.thoughts import answer_start

CLOSE = "</tool_call>"
MAX_CANDIDATES = 1000
"""Of the places where a call could begin; reading each costs time."""
_PARAMETER, _END_PARAMETER, _END_FUNCTION = "<parameter=", "</parameter>", "</function>"
_BODY = r'(?:[\[{]\s*(?=["{}])|<function=)'
_CANDIDATES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"^[ \t]*<tool_call>\s*(?={_BODY})",
        rf"^[ \t]*(?={_BODY})",
        rf"<tool_call>\s*(?={_BODY})",
        r"(?=[{]\s*[\"}]|<function=)",
        r"<tool_call>",
    )
)
"""Where a call may begin, the surest first."""
_NEXT = re.compile(rf"\s*(?:<tool_call>\s*)?(?={_BODY})")
"""A call right behind another one, on the same line, too."""
_CLOSED_CALL, _CLOSED_FUNCTION = re.compile(rf"\s*{CLOSE}"), re.compile(rf"\s*{_END_FUNCTION}")
_OPENED_PARAMETER = re.compile(rf"\s*{_PARAMETER}([A-Za-z_]\w*)>\n?")
Arguments = dict[str, Any]
IsCall = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Call:
    """One JSON value or XML call, and where it stands in the text, tags included."""

    start: int
    end: int
    value: Any


def call_start(text: str, is_call: IsCall) -> Start | None:
    """Where the first call begins, a guess when it cannot be read; None when nothing looks like one."""
    first = None
    for pattern in _CANDIDATES:
        calls, mistake = _calls(text, pattern, is_call)
        if calls:
            return Start(False, calls[0].start)
        first = first or mistake
    return Start(True, first[0]) if first else None


def calls_in(text: str, is_call: IsCall) -> list[Call]:
    """All calls, in order. Raises ActionTextError when none can be read."""
    first = None
    for pattern in _CANDIDATES:
        calls, mistake = _calls(text, pattern, is_call)
        if calls:
            return calls
        first = first or mistake
    raise first[1] if first else ActionTextError("the tool call holds no JSON object")


def _calls(
    text: str, pattern: re.Pattern[str], is_call: IsCall
) -> tuple[list[Call], tuple[int, ActionTextError] | None]:
    """The calls that begin as the pattern says, and the first place where one cannot be read."""
    found: list[Call] = []
    mistake: tuple[int, ActionTextError] | None = None
    place, end = answer_start(text), 0
    for number, candidate in enumerate(pattern.finditer(text, place)):
        if number >= MAX_CANDIDATES:
            break
        if candidate.start() < end:
            continue
        following: re.Match[str] | None = candidate
        while following:
            try:
                call = _call_at(text, following, is_call)
            except ActionTextError as error:
                mistake = mistake or (following.start(), error)
                break
            found.append(call)
            end = call.end
            following = _NEXT.match(text, end)
    return found, mistake


def _call_at(text: str, opened: re.Match[str], is_call: IsCall) -> Call:
    value, end = _value_at(text, opened.end())
    if not is_call(value):
        raise ActionTextError('the call has no "action"')
    closed = _CLOSED_CALL.match(text, end)
    return Call(opened.start(), closed.end() if closed else end, value)


def _value_at(text: str, place: int) -> tuple[Any, int]:
    if text.startswith("<function=", place):
        return _xml_at(text, place)
    if text[place : place + 1] not in ("{", "["):
        raise ActionTextError("the tool call holds no JSON object")
    try:
        return json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text, place)
    except ActionTextError:
        raise
    except RecursionError as error:
        raise ActionTextError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise ActionTextError(f"the JSON cannot be read: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ActionTextError(f"{name} is not a number")


def _xml_at(text: str, place: int) -> tuple[Any, int]:
    """<function=NAME><parameter=KEY>\\nVALUE\\n</parameter>...</function>; each value is a text."""
    name_end = text.find(">", place)
    name = text[place + len("<function=") : name_end].strip()
    if name_end < 0 or not name.isidentifier():
        raise ActionTextError("the function of the tool call has no name")
    arguments: Arguments = {}
    place = name_end + 1
    for key, value, after in _parameters(text, place):
        arguments[key], place = value, after
    closed = _CLOSED_FUNCTION.match(text, place)
    return {"name": name, "arguments": arguments}, closed.end() if closed else place


def _parameters(text: str, place: int) -> Iterator[tuple[str, str, int]]:
    """(key, value, where it ends) of each parameter that follows."""
    while opened := _OPENED_PARAMETER.match(text, place):
        closed = text.find(_END_PARAMETER, opened.end())
        if closed < 0:
            raise ActionTextError(f"the parameter {opened[1][:40]} of the tool call is not closed")
        place = closed + len(_END_PARAMETER)
        yield opened[1], text[opened.end() : closed].removesuffix("\n"), place
