"""Dialect ui-tars: UI-TARS' action text, calls after "Action:", read with `ast`; only literals.

Thought: ...
Action: click(start_box='(512,340)')        click(point='<point>512 340</point>')
"""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import islice

from training.actions.errors import ActionTextError
from training.actions.key_names import chord, key_list
from training.actions.parse.argument_values import Found, Points, Start, scroll, seconds, typed_text
from training.actions.parse.thoughts import answer_start, words_around
from training.actions.pointer_words import UI_TARS_POINTER
from training.contracts.types import Action, ActionKind

K = ActionKind
SCROLL_NOTCHES = 5
"""The text names no amount; OSWorld's agent of this model turns the wheel so far."""
WAIT_S = 5.0
"""Likewise of wait()."""
MAX_ENDS = 20
"""Brackets at the end of a line that are tried as the end of one call."""
_LINE = re.compile(r"^[^\S\n]*Action:[^\S\n]*", re.MULTILINE)
_INLINE = re.compile(r"Action:[^\S\n]*(?=[a-z_]+\()")
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\(")
_CALL_END = re.compile(r"\)[^\S\n]*(?:\n|\Z)")
_ARGUMENT = re.compile(r"""\s*(\w+)\s*=\s*(['"])(.*)\2\s*\)\s*""", re.DOTALL)
_ESCAPE = re.compile(r"\\(['\"\\nt])")
_ESCAPED = {"n": "\n", "t": "\t"}
_BOX = ("start_box", "point", "start_point")
_END_BOX = ("end_box", "end_point")
Arguments = dict[str, str]


def start(text: str) -> Start | None:
    """Where the last "Action:" begins that begins a line; else the last one before a call."""
    found = _opened(text)
    return Start(False, found.start()) if found else None


def parse(text: str, points: Points) -> Found:
    """The calls after "Action:"."""
    opened = _opened(text)
    if opened is None:
        raise ActionTextError('no line begins with "Action:"')
    calls = list(_calls(text, opened.end()))
    if not calls:
        raise ActionTextError("the action holds no call")
    actions = tuple(_action(name, arguments, points) for name, arguments, _ in calls)
    return Found(actions, words_around(text, opened.start(), calls[-1][2]).removeprefix("Thought:").strip())


def _opened(text: str) -> re.Match[str] | None:
    place = answer_start(text)
    for pattern in (_LINE, _INLINE):
        if found := list(pattern.finditer(text, place)):
            return found[-1]
    return None


def _calls(text: str, place: int) -> Iterator[tuple[str, Arguments, int]]:
    """(name, arguments, where it ends) of each call, one after another; words that follow end them."""
    is_first = True
    while (opened := _CALL.match(text, place)) and (is_first or opened[1] in ACTIONS):
        arguments, place = _arguments(text, opened)
        yield opened[1], arguments, place
        is_first = False


def _arguments(text: str, opened: re.Match[str]) -> tuple[Arguments, int]:
    """The arguments of one call, and where it ends."""
    ends = [found.start() + 1 for found in islice(_CALL_END.finditer(text, opened.end()), MAX_ENDS)]
    for end in ends:
        try:
            call = ast.parse(text[opened.start(1) : end], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return _literals(call), end
    for end in ends:  # a text with quotes of its own, or lines
        if found := _ARGUMENT.fullmatch(text, opened.end(), end):
            return {found[1]: _ESCAPE.sub(lambda mark: _ESCAPED.get(mark[1], mark[1]), found[3])}, end
    raise ActionTextError("the action cannot be read: a call needs texts in quotes and its closing bracket")


def _literals(call: ast.expr) -> Arguments:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ActionTextError("the action must be one call with named arguments")
    arguments: Arguments = {}
    for word in call.keywords:
        value = word.value.value if isinstance(word.value, ast.Constant) else None
        if word.arg is None or not isinstance(value, str):
            raise ActionTextError("arguments must be texts in quotes")
        arguments[word.arg] = value
    return arguments


def _action(name: str, arguments: Arguments, points: Points) -> Action:
    row = ACTIONS.get(name)
    if row is None:
        raise ActionTextError(f"unknown action {name[:40]!r}")
    build, allowed = row
    if unknown := arguments.keys() - allowed:
        raise ActionTextError(f"{name} takes no {min(unknown)[:40]!r}")
    return build(arguments, points)


def _point(arguments: Arguments, points: Points, names: tuple[str, ...]) -> tuple[int, int]:
    """The middle of a box or point of this name; boxes have two corners."""
    name = next((name for name in names if name in arguments), None)
    if name is None:
        raise ActionTextError(f"{names[0]} is missing")
    try:
        return points.pair(arguments[name], name)
    except ActionTextError as error:
        raise ActionTextError(f"{name} must hold a point or a box") from error


def _at_point(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    def build(arguments: Arguments, points: Points) -> Action:
        x, y = _point(arguments, points, _BOX)
        return Action(kind=kind, x=x, y=y)

    return build


def _drag(arguments: Arguments, points: Points) -> Action:
    x, y = _point(arguments, points, _BOX)
    to_x, to_y = _point(arguments, points, _END_BOX)
    return Action(kind=K.DRAG, x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll(arguments: Arguments, points: Points) -> Action:
    has_place = any(name in arguments for name in _BOX)
    x, y = _point(arguments, points, _BOX) if has_place else (None, None)
    return scroll(arguments.get("direction"), SCROLL_NOTCHES, x, y)


def _keys(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    """hotkey presses and lets go; press and release are a pair, and the key is down between them."""

    def build(arguments: Arguments, points: Points) -> Action:
        value = next((arguments[name] for name in ("key", "hotkey", "press") if name in arguments), "")
        return Action(kind=kind, keys=chord(key_list(value.split())))

    return build


def _type(arguments: Arguments, points: Points) -> Action:
    return Action(kind=K.TYPE, text=typed_text(arguments.get("content")))


def _wait(arguments: Arguments, points: Points) -> Action:
    return Action(kind=K.WAIT, seconds=seconds(WAIT_S))


def _finished(arguments: Arguments, points: Points) -> Action:
    content = arguments.get("content")
    text = typed_text(content) if content else None
    return Action(kind=K.TERMINATE, status="success", text=text)


def _call_user(arguments: Arguments, points: Points) -> Action:
    return Action(kind=K.TERMINATE, status="failure")


_PLACE = frozenset(_BOX)
_KEYS = frozenset({"key", "hotkey", "press"})
_NOTHING: frozenset[str] = frozenset()
_DRAG = (_drag, frozenset({*_BOX, *_END_BOX}))
ACTIONS: dict[str, tuple[Callable[[Arguments, Points], Action], frozenset[str]]] = {
    **{name: (_at_point(kind), _PLACE) for kind, name in UI_TARS_POINTER.items()},
    "left_single": (_at_point(K.CLICK), _PLACE),
    "drag": _DRAG,
    "select": _DRAG,
    "scroll": (_scroll, _PLACE | {"direction"}),
    "hotkey": (_keys(K.KEY), _KEYS),
    "press": (_keys(K.KEY_DOWN), _KEYS),
    "keydown": (_keys(K.KEY_DOWN), _KEYS),
    "release": (_keys(K.KEY_UP), _KEYS),
    "keyup": (_keys(K.KEY_UP), _KEYS),
    "type": (_type, frozenset({"content"})),
    "wait": (_wait, _NOTHING),
    "finished": (_finished, frozenset({"content"})),
    "call_user": (_call_user, frozenset({"content"})),
}
"""Whitelist: action name -> (builder, allowed arguments)."""
