"""Code of pyautogui as text, read with `ast`; only literals, only listed names, and never run.

pyautogui.click(350, 720)    pyautogui.hotkey("ctrl", "s")    time.sleep(2)    DONE

The last code block counts, and words around it are words. OpenCUA's models write the same with functions of
their own: computer.wait(), computer.tripleClick(x, y) and computer.terminate(status='success').
"""

import ast
import re
from collections.abc import Iterator
from textwrap import dedent

from training.actions.errors import ActionTextError
from training.actions.key_names import chord
from training.actions.parse.argument_values import Found, Mark, Points, Start
from training.actions.parse.joined_calls import join_calls
from training.actions.parse.pyautogui_functions import FUNCTIONS, Copied, Row, Values
from training.actions.parse.thoughts import answer_start, words_around
from training.contracts.action import Action, ActionKind

CONTROL = {
    "WAIT": Action(kind=ActionKind.WAIT, seconds=1.0),
    "DONE": Action(kind=ActionKind.TERMINATE, status="success"),
    "FAIL": Action(kind=ActionKind.TERMINATE, status="failure"),
}
"""OSWorld's control words."""
OPTIONAL = (ActionKind.WAIT, ActionKind.TERMINATE)
_LINE = r"(?:import (?:pyautogui|pyperclip|time)\b|(?:with )?pyautogui\.|pyperclip\.|time\.sleep|computer\.)"
_START = re.compile(rf"^[ \t]*(?={_LINE})", re.MULTILINE)
_FENCE = re.compile(
    r"(?:^[ \t]*```(?:python|py|code)?[ \t]*+\n?|```(?:python|py|code)?[ \t]*+\n)(.*?)```",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Blanks are taken once: tried at each of their lengths they take the square of it."""
_OPEN_FENCE = re.compile(r"```(?:python|py|code)?[ \t]*+\n?\Z", re.IGNORECASE)
_AROUND_WORD = "`*. \t\n"
_MARK = re.compile(r"tag_([0-9]{1,5})")
"""OSWorld's set-of-marks agents put such a variable where a point stands."""
_IMPORTABLE = {"pyautogui", "time", "pyperclip"}
_SETTINGS = {"FAILSAFE", "PAUSE"}
"""`pyautogui.NAME = ...` lines that trainers put in front of their code; they change nothing here."""
MAX_TRIES = 40
"""Lines of words behind code without a fence that are left out one by one."""


def start(text: str) -> Start | None:
    """Where the code begins, or the control word that ends the text; None when there is neither."""
    found = _code(text)
    if found is not None:
        return Start(False, found[0])
    word = _last_word(text)
    return Start(False, word) if word is not None else None


def parse(text: str, points: Points) -> Found:
    """The calls of the last code block, and the control word behind it."""
    found = _code(text)
    if found is None:
        word = _last_word(text)
        if word is None:
            raise ActionTextError("the text holds no code")
        return Found((_control(text[word:]),), words_around(text, word, len(text)))
    begin, end, code = found
    body = _body(code)
    actions = read_code(body, points)
    word = _last_word(text)
    if word is not None and word >= end:
        actions = (*actions, _control(text[word:]))
    return Found(actions, words_around(text, begin, end), _shorter(actions))


def _shorter(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Without pauses behind others, and without an end that the agent can still say at its next turn."""
    kept = tuple(action for index, action in enumerate(actions) if not index or action.kind not in OPTIONAL)
    return kept if len(kept) < len(actions) else ()


def read_code(body: list[ast.stmt], points: Points) -> tuple[Action, ...]:
    """The actions of these statements, in order. Raises ActionTextError."""
    steps = [step for node in body for step in _steps(node, points)]
    actions = tuple(join_calls(steps))
    if not actions:
        raise ActionTextError("the code holds no call")
    return actions


def read_statements(code: str) -> list[ast.stmt]:
    """The statements of a text. Raises ActionTextError."""
    try:
        return ast.parse(dedent(code).strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionTextError(f"the code cannot be read: {type(error).__name__}") from error


def _code(text: str) -> tuple[int, int, str] | None:
    """(start, end, code): the last block that holds code, else the lines behind the first that does."""
    place = answer_start(text)
    blocks = [block for block in _FENCE.finditer(text, place) if _is_code(block[1])]
    if blocks:
        return blocks[-1].start(), blocks[-1].end(), blocks[-1][1]
    opened = _START.search(text, place)
    if opened is None:
        return None
    begin = opened.start()
    code = _code_lines(text[begin:])
    fence = _OPEN_FENCE.search(text, place, begin)  # of a block that does not end
    return (fence.start() if fence else begin), begin + len(code), code


def _is_code(block: str) -> bool:
    return bool(_START.search(block)) or block.strip(_AROUND_WORD) in CONTROL


def _code_lines(code: str) -> str:
    """The text without the lines of words at its end; all of it when code stands among them."""
    lines = code.split("\n")
    for kept in range(len(lines), max(0, len(lines) - MAX_TRIES), -1):
        tried = "\n".join(lines[:kept])
        if _START.search("\n".join(lines[kept:])):
            break
        try:
            body = read_statements(tried)
        except ActionTextError:
            continue
        if not any(_is_word(node) for node in body):
            return tried
    return code


def _is_word(node: ast.stmt) -> bool:
    """A line such as "Saved", which is also a name of Python."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id not in CONTROL


def _last_word(text: str) -> int | None:
    """Where the control word begins that is the last line, or in any letters the whole text."""
    bare = text.strip(_AROUND_WORD)
    line = bare.rfind("\n") + 1
    if bare[line:].strip(_AROUND_WORD) not in CONTROL and bare.upper() not in CONTROL:
        return None
    return len(text) - len(text.lstrip(_AROUND_WORD)) + line


def _control(text: str) -> Action:
    return CONTROL[text.strip(_AROUND_WORD).upper()]


def _body(code: str) -> list[ast.stmt]:
    if code.strip(_AROUND_WORD) in CONTROL:
        code = code.strip(_AROUND_WORD)
    return read_statements(code)


def _steps(node: ast.stmt, points: Points) -> Iterator[Action | Copied]:
    if _is_setting(node):
        return
    if isinstance(node, ast.With):
        yield from _held(node, points)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id in CONTROL:
        yield CONTROL[node.value.id]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _call(node.value, points)
    else:
        raise ActionTextError("only calls are allowed")


def _is_setting(node: ast.stmt) -> bool:
    """Imports, settings of pyautogui, and texts that are remarks."""
    if isinstance(node, ast.Import):
        return all(name.name in _IMPORTABLE and not name.asname for name in node.names)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return isinstance(node.value.value, str)
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.targets[0].value, ast.Name)
        and node.targets[0].value.id == "pyautogui"
        and node.targets[0].attr in _SETTINGS
    )


def _held(node: ast.With, points: Points) -> Iterator[Action | Copied]:
    """`with pyautogui.hold(keys):` as its keys down, what is in it, and the keys up."""
    call = node.items[0].context_expr
    if len(node.items) > 1 or not isinstance(call, ast.Call) or _name(call) != "pyautogui.hold":
        raise ActionTextError("only `with pyautogui.hold(...)` is allowed")
    values = [_literal(value) for value in call.args]
    keys = chord(values[0] if len(values) == 1 and isinstance(values[0], list) else values)
    yield Action(kind=ActionKind.KEY_DOWN, keys=keys)
    for inner in node.body:
        yield from _steps(inner, points)
    yield Action(kind=ActionKind.KEY_UP, keys=keys)


def _name(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        raise ActionTextError("only pyautogui.NAME(...) is allowed")
    return f"{call.func.value.id}.{call.func.attr}"


def _call(call: ast.Call, points: Points) -> tuple[Action | Copied, ...]:
    name = _name(call)
    row = FUNCTIONS.get(name)
    if row is None:
        raise ActionTextError(f"{name[:40]} is not allowed")
    return row.build(_values(name, row, call), points)


def _values(name: str, row: Row, call: ast.Call) -> Values:
    if row.parameters == ("*",):
        if call.keywords and any(word.arg not in row.ignored for word in call.keywords):
            raise ActionTextError(f"{name} takes no such keyword")
        found = [_literal(node) for node in call.args]
        return {"*": found[0] if len(found) == 1 and isinstance(found[0], list) else found}
    if len(call.args) > len(row.parameters):
        raise ActionTextError(f"{name} takes at most {len(row.parameters)} arguments")
    values = {key: _literal(node) for key, node in zip(row.parameters, call.args, strict=False)}
    for word in call.keywords:
        if word.arg in row.ignored:
            continue
        if word.arg not in row.parameters or word.arg in values:
            raise ActionTextError(f"{name} takes no {str(word.arg)[:40]!r}")
        values[str(word.arg)] = _literal(word.value)
    return values


def _literal(node: ast.expr) -> object:
    """A number, a string, a flat list of them, or a mark of the picture; anything else is refused unread."""
    if isinstance(node, ast.Name) and (mark := _MARK.fullmatch(node.id)):
        return Mark(int(mark[1]))
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (int, float, str))):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in node.elts):
        return [_literal(item) for item in node.elts]
    raise ActionTextError("arguments must be literal numbers, strings or lists of them")
