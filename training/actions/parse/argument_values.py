"""Values in a completion: numbers, points, texts and amounts, each checked against its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from training.actions.coordinates import Size, convert_point
from training.actions.errors import ActionTextError
from training.actions.pointer_words import DIRECTIONS
from training.contracts.types import Action, ActionKind

MAX_TYPED_CHARACTERS = 4000
MAX_WAIT_S = 60.0
MAX_SCROLL_NOTCHES = 50
"""More notches than any page; larger amounts are cut to it (models write pixels here)."""
MAX_COORDINATE = 100_000
TEXT_AFTER = "text after the action"


@dataclass(frozen=True, slots=True)
class Found:
    """Actions in order, at least one, and the text before them."""

    actions: tuple[Action, ...]
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """Converts the coordinates of one completion to screen pixels."""

    source: Size
    """Extent of the completion's coordinate space."""
    screen: Size
    """Desktop size, pixels."""

    def to_screen(self, x: Any, y: Any, what: str = "coordinate") -> tuple[int, int]:
        """Screen pixels of a completion's point; off-screen stays off-screen."""
        return convert_point((number(x, what), number(y, what)), self.source, self.screen)

    def pair(self, value: Any, what: str) -> tuple[int, int]:
        """Screen pixels of a completion's `[x, y]`."""
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ActionTextError(f"{what} must be [x, y]")
        return self.to_screen(value[0], value[1], what)


def number(value: Any, what: str, limit: float = MAX_COORDINATE) -> float:
    """A finite number of at most `limit` in size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ActionTextError(f"{what} must be a number")
    if not math.isfinite(value) or abs(value) > limit:
        raise ActionTextError(f"{what} is out of range")
    return float(value)


def typed_text(value: Any) -> str:
    """Literal text to type."""
    if not isinstance(value, str) or not value:
        raise ActionTextError("text must be a non-empty string")
    if len(value) > MAX_TYPED_CHARACTERS:
        raise ActionTextError(f"text is longer than {MAX_TYPED_CHARACTERS} characters")
    if any(_is_untypable(char) for char in value):
        raise ActionTextError("text holds characters that no keyboard has")
    return value


def seconds(value: Any) -> float:
    """A waiting time in seconds."""
    duration = number(value, "time", MAX_WAIT_S)
    if duration < 0:
        raise ActionTextError("time must not be negative")
    return duration


def notches(value: Any) -> int:
    """Wheel notches, cut to the maximum, sign kept."""
    amount = round(number(value, "amount"))
    return max(-MAX_SCROLL_NOTCHES, min(MAX_SCROLL_NOTCHES, amount))


def scroll(direction: object, amount: int, x: int | None = None, y: int | None = None) -> Action:
    """Turn the wheel `amount` notches up, down, left or right."""
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise ActionTextError("direction must be up, down, left or right")
    right, down = DIRECTIONS[direction]
    return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_x=right * amount, scroll_y=down * amount)


def _is_untypable(char: str) -> bool:
    """Control characters and lone surrogates."""
    return (char < " " and char not in "\n\t") or "\ud800" <= char < "\ue000"
