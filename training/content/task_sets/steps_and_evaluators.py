"""Builders of what a generated task holds: the oracle's actions, set-up steps and evaluators."""

from typing import Any

from training.contracts.types import Action, ActionKind

DONE = Action(kind=ActionKind.TERMINATE, status="success")


def type_text(text: str) -> Action:
    return Action(kind=ActionKind.TYPE, text=text)


def press_keys(*keys: str) -> Action:
    return Action(kind=ActionKind.KEY, keys=keys)


def wait(seconds: float) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds)


def setup_step(verb: str, **parameters: Any) -> dict[str, Any]:
    return {"type": verb, "parameters": parameters}


def place_window(window_name: str, box: tuple[int, int, int, int]) -> dict[str, Any]:
    """Setup step that puts a window's content at (x, y, width, height)."""
    return setup_step(
        "place_window", window_name=window_name, **dict(zip(("x", "y", "width", "height"), box, strict=True))
    )


def file_holds(path: str, text: str, wait_s: float) -> dict[str, Any]:
    """Evaluator: the file's text, up to newlines at its end."""
    return {
        "func": "compare_text_file",
        "result": {"type": "vm_file", "path": path, "dest": path.rsplit("/", 1)[-1]},
        "expected": {"type": "inline", "content": text + "\n"},
        "options": {"ignore_trailing_newlines": True},
        "wait_s": wait_s,
    }
