"""Questions about a screenshot that a demonstration answers for free."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from training.actions.coordinates import model_point
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind, Trajectory


@dataclass(frozen=True, slots=True)
class Question:
    """A text asked about a screenshot and the completion that answers it."""

    text: str
    answer: str


def locator_questions(trajectory: Trajectory, grid: int) -> list[Question]:
    """Widget name -> its centre as "x,y" permille, multiples of `grid`. Empty without named widgets."""
    screen = trajectory.task.screen
    found = []
    for widget in _widgets(trajectory):
        x, y = model_point(widget["x"], widget["y"], CoordinateSpace.PERMILLE, screen, grid=grid)
        found.append(Question(str(widget["name"]), f"{x},{y}"))
    return found


def instruction_questions(
    trajectory: Trajectory, write: Callable[[Action, tuple[int, int]], str], other_texts: Sequence[str] = ()
) -> list[Question]:
    """What one could be asked on the first screen, each with the first action it takes.

    - The task's own instruction.
    - `oracle["alternatives"]`, [{"instruction", "action"}], where the task's family gives any.
    - When the first action clicks a widget that the instruction names: the same for every other widget.
    - When it types a text that the instruction quotes: the same for `other_texts`.

    `write` turns an action on a screen of (width, height) pixels into a completion.
    """
    first, screen = trajectory.turns[0], trajectory.task.screen
    if first.action is None:
        return []
    asked = [(first.observation.text, first.action)]
    for alternative in trajectory.task.oracle.get("alternatives") or []:
        asked.append((alternative["instruction"], Action.model_validate(alternative["action"])))
    asked += _other_widgets(first.observation.text, first.action, _widgets(trajectory))
    asked += _other_texts(first.observation.text, first.action, other_texts)
    return [Question(text, write(action, screen)) for text, action in asked]


def typed_text(trajectory: Trajectory) -> str | None:
    """The text that the first action types, if it does."""
    action = trajectory.turns[0].action if trajectory.turns else None
    return action.text if action is not None and action.kind is ActionKind.TYPE else None


def _other_widgets(
    instruction: str, action: Action, widgets: list[dict[str, Any]]
) -> list[tuple[str, Action]]:
    if action.kind is not ActionKind.CLICK or not widgets:
        return []
    target = min(widgets, key=lambda widget: _distance(widget, action))
    if instruction.count(target["name"]) != 1:
        return []
    return [
        (
            instruction.replace(target["name"], widget["name"]),
            action.model_copy(update={"x": widget["x"], "y": widget["y"]}),
        )
        for widget in widgets
        if widget is not target
    ]


def _other_texts(instruction: str, action: Action, texts: Sequence[str]) -> list[tuple[str, Action]]:
    if action.kind is not ActionKind.TYPE or not action.text or instruction.count(action.text) != 1:
        return []
    return [
        (instruction.replace(action.text, text), action.model_copy(update={"text": text})) for text in texts
    ]


def _widgets(trajectory: Trajectory) -> list[dict[str, Any]]:
    return trajectory.task.oracle.get("widgets") or []


def _distance(widget: dict[str, Any], action: Action) -> int:
    return (widget["x"] - (action.x or 0)) ** 2 + (widget["y"] - (action.y or 0)) ** 2
