"""Episodes of a set of demonstrations -> lines of the import's JSONL, pictures inside.

Each line goes through the same check as any other when the file is uploaded; this refuses only what it cannot
turn into a line, with its file, line and field.
"""

import ast
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.actions.coordinates import Size
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action
from training.untrusted.pictures import NotAPicture, open_picture
from webapp.replay.demonstration_sources.mapping import ActionForm, Mapping, at

POINTED = ("x", "y")
MAX_ACTIONS = 50
"""Of one call, such as a press of a list of keys."""


class Unconvertible(ValueError):
    """Raised for what is missing or wrong in an episode; names the field."""


BROKEN = (ValueError, OverflowError, RecursionError)
"""Unconvertible, and what numbers that are none, texts of no form and code of thousands of levels raise."""


@dataclass(frozen=True, slots=True)
class Converted:
    """One episode: its line, or why there is none. Both empty: `keep` leaves it out."""

    where: str
    line: dict[str, Any] | None = None
    problem: str = ""


def convert(folder: Path, mapping: Mapping) -> Iterator[Converted]:
    """Every episode of the set in `folder`, in the order of its files."""
    for where, episode in _episodes(folder, mapping):
        if isinstance(episode, str):
            yield Converted(where, problem=episode)
        elif any(at(episode, place) != value for place, value in mapping.keep.items()):
            yield Converted(where)
        else:
            try:
                yield Converted(where, _line(episode, folder / mapping.pictures, mapping))
            except BROKEN as problem:
                yield Converted(where, problem=str(problem)[:300])


def _episodes(folder: Path, mapping: Mapping) -> Iterator[tuple[str, Any]]:
    """(place, episode); a text stands for one that cannot be read."""
    for file in sorted(folder.glob(mapping.episodes)):
        if file.suffix == ".jsonl":
            with file.open(encoding="utf-8-sig", errors="replace") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield f"{file.name}:{number}", _json(line)
        else:
            found = _json(file.read_text(encoding="utf-8-sig", errors="replace"))
            for episode in found if isinstance(found, list) else [found]:
                yield file.name, episode


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except BROKEN as error:
        return f"not JSON: {error}"
    return "not an object" if isinstance(found, str) else found


def _line(episode: Any, pictures: Path, mapping: Mapping) -> dict[str, Any]:
    task_id = at(episode, mapping.task_id)
    instruction = next((text for place in mapping.instruction if (text := at(episode, place))), None)
    steps = at(episode, mapping.steps)
    if not task_id or not instruction:
        missing = mapping.task_id if not task_id else ", ".join(mapping.instruction)
        raise Unconvertible(f"{missing}: missing")
    if not isinstance(steps, list) or not steps:
        raise Unconvertible(f"{mapping.steps}: no list of steps")
    messages: list[dict[str, Any]] = []
    images: list[str] = []
    for number, step in enumerate(steps):
        picture, screen = _picture(step, pictures, mapping, f"{mapping.steps}[{number}]")
        thought = str(at(step, mapping.thought) or "") if mapping.thought else ""
        for action in _actions(step, screen, mapping, f"{mapping.steps}[{number}]"):
            lead = f"[Task] {instruction}\n\n" if not messages else ""
            images.append(picture)
            messages.append({"role": "user", "content": f"{lead}<image>"})
            text = format_action(action, "json", CoordinateSpace.SCREEN, screen)
            messages.append({"role": "assistant", "content": f"{thought}\n{text}".strip()})
            thought = ""
    return {
        "task_id": str(task_id),
        "instruction": str(instruction),
        "domain": str(at(episode, mapping.domain) or "") if mapping.domain else "",
        "messages": messages,
        "images": images,
    }


def _picture(step: Any, pictures: Path, mapping: Mapping, where: str) -> tuple[str, Size]:
    """(base64, its size)"""
    name = at(step, mapping.picture)
    field = f"{where}.{mapping.picture}"
    if not isinstance(name, str) or not name:
        raise Unconvertible(f"{field}: missing")
    if "\x00" in name:
        raise Unconvertible(f"{field}: holds the character NUL")
    path = (pictures / name).resolve()
    if pictures.resolve() not in path.parents:
        raise Unconvertible(f"{field}: {name[:80]} is outside of {pictures}")
    try:
        with open_picture(path) as image:
            size = image.size
        return b64encode(path.read_bytes()).decode(), size
    except (OSError, NotAPicture) as error:
        raise Unconvertible(f"{field}: {path}: {error}") from error


def _actions(step: Any, screen: Size, mapping: Mapping, where: str) -> list[Action]:
    if mapping.code:
        return _of_code(at(step, mapping.code), screen, mapping.coordinates, f"{where}.{mapping.code}")
    name, argument = str(at(step, mapping.kind) or ""), at(step, mapping.argument)
    form = mapping.actions.get(f"{name} {argument}" if isinstance(argument, str) else name)
    form = form or mapping.actions.get(name)
    if form is None:
        raise Unconvertible(f"{where}.{mapping.kind}: {name[:40]!r} is not in the mapping's actions")
    return [_of_form(form, step, screen, mapping.coordinates, where)]


def _of_form(form: ActionForm, step: Any, screen: Size, coordinates: str, where: str) -> Action:
    x, y = _point(at(step, form.point), screen, coordinates, where) if form.point else (None, None)
    to_x, to_y = _point(at(step, form.target), screen, coordinates, where) if form.target else (None, None)
    text = at(step, form.text) if form.text else None
    if form.text and not isinstance(text, str):
        raise Unconvertible(f"{where}.{form.text}: no text")
    return Action(
        kind=form.kind, x=x, y=y, to_x=to_x, to_y=to_y, text=text, keys=form.keys, status=form.status
    )


def _point(value: Any, screen: Size, coordinates: str, where: str) -> tuple[int, int]:
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or not all(isinstance(part, int | float) for part in value):
        raise Unconvertible(f"{where}: {str(value)[:60]} is no point [x, y]")
    x, y = (_pixel(part, side, coordinates) for part, side in zip(value, screen, strict=True))
    return x, y


def _pixel(value: float, side: int, coordinates: str) -> int:
    share = {"fraction": side, "permille": side / 1000, "pixels": 1.0}[coordinates]
    return max(0, min(side - 1, int(value * share)))


def _of_code(code: Any, screen: Size, coordinates: str, where: str) -> list[Action]:
    """One action per call, coordinates in pixels. The code is read with the whitelist, never run."""
    if not isinstance(code, str) or not code.strip():
        raise Unconvertible(f"{where}: no code")
    try:
        body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unconvertible(f"{where}: the code cannot be read: {error}") from error
    actions: list[Action] = []
    for node in body:
        if isinstance(node, ast.Import):
            continue
        if coordinates != "pixels" and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _to_pixels(node.value, screen, coordinates)
        text = ast.unparse(node)
        parsed = parse_completion(
            text, dialect="pyautogui", space=CoordinateSpace.SCREEN, screen=screen, most=MAX_ACTIONS
        )
        if parsed.action is None:
            raise Unconvertible(f"{where}: {text[:60]}: {parsed.error}")
        actions += parsed.actions
    if not actions:
        raise Unconvertible(f"{where}: the code holds no call")
    return actions


def _to_pixels(call: ast.Call, screen: Size, coordinates: str) -> None:
    """Rewrite x and y of a call: by name, or as its first two numbers where the second one is there, too."""
    named = [(word.arg, word.value) for word in call.keywords if word.arg in POINTED]
    placed = list(zip(POINTED, call.args, strict=False)) if len(call.args) >= 2 else []
    for name, node in [*named, *placed]:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            node.value = _pixel(node.value, screen[POINTED.index(str(name))], coordinates)
