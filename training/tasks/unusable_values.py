"""What a task must not hold, wherever it comes from: no table keeps it and no desktop can be made so."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from training.contracts.plain_errors import in_plain_words
from training.contracts.task import MAX_FAMILY, MAX_ID
from training.contracts.types import Action, Task

SCREEN_SIDES = (200, 4096)
"""Pixels."""


def unusable(task: Task) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of values that no table or desktop can hold."""
    if len(task.task_id) > MAX_ID:
        yield "id", f"is longer than {MAX_ID} characters"
    if len(task.family) > MAX_FAMILY:
        yield "family", f"is longer than {MAX_FAMILY} characters"
    if not 1 <= task.level <= 1000:
        yield "level", "must be from 1 to 1000"
    low, high = SCREEN_SIDES
    if not all(low <= side <= high for side in task.screen):
        yield "screen", f"must be [width, height] in pixels, each from {low} to {high}"
    if task.max_turns is not None and not 1 <= task.max_turns <= 1000:
        yield "max_turns", "must be from 1 to 1000"
    yield from _oracle(task.oracle.get("actions", []))


def _oracle(actions: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(actions, list):
        yield "oracle.actions", "must be a list"
        return
    for index, action in enumerate(actions):
        try:
            Action.model_validate(action)
        except ValidationError as error:
            item = error.errors()[0]
            yield (
                ".".join(["oracle.actions", str(index), *map(str, item["loc"])]),
                in_plain_words(item["msg"]),
            )
