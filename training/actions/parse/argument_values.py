"""Values in a completion: numbers, points, texts and amounts, each checked against its limits."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from training.actions.coordinates import Size, convert_point
from training.actions.errors import ActionTextError
from training.actions.pointer_words import DIRECTIONS
from training.contracts.action import Action, ActionKind, Button
from training.contracts.observed_text import Box

MAX_TYPED_CHARACTERS = 4000
MAX_WAIT_S = 60.0
MAX_SCROLL_NOTCHES = 50
"""More notches than any page; larger amounts are cut to it (models write pixels here)."""
MAX_COORDINATE = 100_000
BUTTONS: dict[str | int, Button] = {
    "left": "left", "middle": "middle", "right": "right", "wheel": "middle",
    "primary": "left", "secondary": "right", 1: "left", 2: "middle", 3: "right",
}  # fmt: skip
"""Spelling -> button; numbers as X counts them."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBER_TEXT = re.compile(rf"{NUMBER.pattern}(?:e-?\d+)?")
_POINT_TEXT = re.compile(r"[\s\d.,()\[\]<>|/a-z_-]{3,120}")
"""Numbers among brackets and marks such as <|box_start|>; the limit keeps reading it cheap."""


class Start(NamedTuple):
    """Where an action begins in a text; the smaller one decides between dialects."""

    is_guess: bool
    """Whether it only looks like one, and cannot be read."""
    place: int


@dataclass(frozen=True, slots=True)
class Found:
    """Actions in order, at least one, and the words around them."""

    actions: tuple[Action, ...]
    thought: str = ""
    shorter: tuple[Action, ...] = ()
    """The same without what may be left out when a turn has no room for it; empty when nothing may."""


class Mark(NamedTuple):
    """A numbered box on the picture, named instead of a point."""

    number: int


@dataclass(frozen=True, slots=True)
class Points:
    """Converts the coordinates of one completion to screen pixels."""

    source: Size
    """Extent of the completion's coordinate space."""
    screen: Size
    """Desktop size, pixels."""
    is_grid: bool = False
    """Whether numbers count a grid of 1000 lines; models write 1000 for the last of them, which is 999."""
    boxes: tuple[Box, ...] = ()
    """Of the numbered marks on the picture, screen pixels."""

    def to_screen(self, x: Any, y: Any, what: str = "coordinate") -> tuple[int, int]:
        """Screen pixels of a completion's point; off-screen stays off-screen."""
        across, down = number(x, what), number(y, what)
        if self.is_grid:
            across, down = _last_line(across, self.source[0]), _last_line(down, self.source[1])
        return convert_point((across, down), self.source, self.screen)

    def pair(self, value: Any, what: str) -> tuple[int, int]:
        """Screen pixels of `[x, y]`, or of the middle of a box `[left, top, right, bottom]` or of a mark."""
        if isinstance(value, Mark):
            return self._middle(value)
        found = _numbers_of(value, what)
        if len(found) not in (2, 4):
            raise ActionTextError(f"{what} must be [x, y] or a box of four numbers")
        return self.to_screen((found[0] + found[-2]) / 2, (found[1] + found[-1]) / 2, what)

    def _middle(self, mark: Mark) -> tuple[int, int]:
        if not 1 <= mark.number <= len(self.boxes):
            known = f"the picture has {len(self.boxes)}" if self.boxes else "the picture has no marks"
            raise ActionTextError(f"there is no tag_{mark.number}: {known}")
        left, top, width, height = self.boxes[mark.number - 1]
        return left + width // 2, top + height // 2


def _last_line(value: float, of: int) -> float:
    return min(value, of - 1) if value <= of else value


def _numbers_of(value: Any, what: str) -> list[float]:
    if isinstance(value, str) and _POINT_TEXT.fullmatch(value):
        value = NUMBER.findall(value)
    elif isinstance(value, dict) and value.keys() == {"x", "y"}:
        value = [value["x"], value["y"]]
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if not isinstance(value, (list, tuple)):
        raise ActionTextError(f"{what} must be [x, y] or a box of four numbers")
    return [number(part, what) for part in value]


def number(value: Any, what: str, limit: float = MAX_COORDINATE) -> float:
    """A finite number of at most `limit` in size, also one that is written as a text."""
    if isinstance(value, str) and _NUMBER_TEXT.fullmatch(value.strip()[:40]):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ActionTextError(f"{what} must be a number")
    if not math.isfinite(value) or abs(value) > limit:
        raise ActionTextError(f"{what} is out of range")
    return float(value)


def count(value: Any, what: str, most: int) -> int:
    """A whole number from 1 to `most`."""
    found = number(value, what)
    if found != int(found) or not 1 <= found <= most:
        raise ActionTextError(f"{what} must be a whole number from 1 to {most}")
    return int(found)


def typed_text(value: Any) -> str:
    """Literal text to type."""
    if not isinstance(value, str) or not value:
        raise ActionTextError("text must be a non-empty string")
    if len(value) > MAX_TYPED_CHARACTERS:
        raise ActionTextError(f"text is longer than {MAX_TYPED_CHARACTERS} characters")
    if any(_is_untypable(char) for char in value):
        raise ActionTextError("text holds characters that no keyboard has")
    return value


def listed(value: Any) -> Any:
    """A list that is written as a text of JSON; anything else as it is."""
    if isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]"):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if len(found) else value
    return value


def seconds(value: Any) -> float:
    """A waiting time in seconds."""
    duration = number(value, "time", MAX_WAIT_S)
    if duration < 0:
        raise ActionTextError("time must not be negative")
    return duration


def button_of(values: dict[str, Any]) -> Button:
    """The button that a call names, the left one by default."""
    name = values.get("button", "left")
    if not isinstance(name, (str, int)) or name not in BUTTONS:
        raise ActionTextError("button must be left, middle or right")
    return BUTTONS[name]


def status_of(value: Any) -> Literal["success", "failure"]:
    """What an agent says of its task when it ends it."""
    word = str(value).strip().lower()
    if word in ("success", "done"):
        return "success"
    if word in ("failure", "fail", "failed", "infeasible"):
        return "failure"
    raise ActionTextError("status must be success or failure")


def notches(value: Any) -> int:
    """Wheel notches, cut to the maximum, sign kept."""
    amount = round(number(value, "amount"))
    return max(-MAX_SCROLL_NOTCHES, min(MAX_SCROLL_NOTCHES, amount))


def scroll(direction: object, amount: int, x: int | None = None, y: int | None = None) -> Action:
    """Turn the wheel `amount` notches up, down, left or right."""
    known = DIRECTIONS.get(direction.strip().lower()) if isinstance(direction, str) else None
    if known is None:
        raise ActionTextError("direction must be up, down, left or right")
    right, down = known
    return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_x=right * amount, scroll_y=down * amount)


def _is_untypable(char: str) -> bool:
    """Control characters and lone surrogates."""
    return (char < " " and char not in "\n\t") or "\ud800" <= char < "\ue000"
