"""What a `step` asks for: a control word, or pyautogui code of one or several calls.

The code is read with the whitelist of `training.actions.parse`, never executed.
"""

import ast
from typing import Any

from training.actions.coordinates import off_screen_error
from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import typed_text
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind
from workers.desktops.contract import EnvError, ErrorKind

MAX_CALLS = 50
FENCES = ("```python", "```")
PASTE_KEYS = Action(kind=ActionKind.KEY, keys=("ctrl", "v"))
CONTROL = ("WAIT", "DONE", "FAIL")
SAFE_SETTINGS = {"FAILSAFE", "PAUSE"}
"""`pyautogui.NAME = ...` lines that trainers put in front of their code; they change nothing here."""


def read_program(action: Any, screen: tuple[int, int], pause_s: float) -> list[Action]:
    """The actions of a step, coordinates in screen pixels. Raises EnvError (task) saying what is wrong."""
    if isinstance(action, dict):
        action = action.get("action_type") or action.get("action")
    if not isinstance(action, str) or not action.strip():
        raise _refused('action: send pyautogui code as text, or "WAIT", "DONE" or "FAIL"')
    if action.strip().upper() == "WAIT":
        return [Action(kind=ActionKind.WAIT, seconds=pause_s)]
    if action.strip().upper() in CONTROL:
        return [_one(action.strip(), screen)]
    return _with_pastes(_statements(action), screen)


def _with_pastes(statements: list[str], screen: tuple[int, int]) -> list[Action]:
    """The calls as actions; text that is copied and then pasted by Ctrl+V is one."""
    actions: list[Action] = []
    copied: str | None = None
    for statement in statements:
        if (text := _copied_text(statement)) is not None:
            copied = text
            continue
        action = _one(statement, screen)
        if copied is not None and action == PASTE_KEYS:
            action, copied = Action(kind=ActionKind.PASTE, text=copied), None
        actions.append(action)
    if copied is not None:
        raise _refused("pyperclip.copy: paste it in the same step, by pyautogui.hotkey('ctrl', 'v')")
    return actions


def _copied_text(statement: str) -> str | None:
    """Of `pyperclip.copy('...')`; None for other calls."""
    if not statement.startswith("pyperclip.copy("):
        return None
    call = ast.parse(statement, mode="eval").body
    arguments = call.args if isinstance(call, ast.Call) and not call.keywords else []
    if len(arguments) == 1 and isinstance(arguments[0], ast.Constant):
        try:
            return typed_text(arguments[0].value)
        except ActionTextError as error:
            raise _refused(f"pyperclip.copy: {error}") from error
    raise _refused("pyperclip.copy takes one text in quotes")


def _statements(code: str) -> list[str]:
    """The calls of the code as text, without imports and harmless settings."""
    code = code.strip()
    if code.startswith("```"):
        code = code.removeprefix(FENCES[0]).removeprefix(FENCES[1]).removesuffix(FENCES[1])
    try:
        body = ast.parse(code.strip()).body
        said = [node for node in body if not isinstance(node, ast.Import) and not _is_setting(node)]
        calls = [ast.unparse(node) for node in said]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(f"the code cannot be read: {error}") from error
    if not calls:
        raise _refused("the code holds no call")
    if len(calls) > MAX_CALLS:
        raise _refused(f"the code holds {len(calls)} calls; at most {MAX_CALLS} per step")
    return calls


def _is_setting(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.targets[0].value, ast.Name)
        and node.targets[0].value.id == "pyautogui"
        and node.targets[0].attr in SAFE_SETTINGS
    )


def _one(text: str, screen: tuple[int, int]) -> Action:
    parsed = parse_completion(text, dialect="pyautogui", space=CoordinateSpace.SCREEN, screen=screen)
    if parsed.action is None:
        raise _refused(f"{text[:80]}: {parsed.error}")
    if error := off_screen_error(parsed.action, screen):
        raise _refused(f"{text[:80]}: {error}")
    return parsed.action


def _refused(message: str) -> EnvError:
    return EnvError(message, kind=ErrorKind.TASK)
