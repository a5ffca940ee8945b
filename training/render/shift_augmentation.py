"""Data augmentation by shifted screenshots: one recorded demonstration becomes many.

A demonstration by keyboard alone does not depend on where its window is, so the whole trajectory may be
moved. (Demonstrations that point are left alone: there, seeing the same screens again is what makes a
random model find out where things are.) A shifted frame is named "SHA@DX,DY", so names still identify pixels.
"""

import random
from typing import Any, NamedTuple

import numpy as np

from training.contracts.types import Trajectory

MARGIN = 24
"""Screen pixels that every known widget's centre keeps to the screen's edge."""


class Shift(NamedTuple):
    """Pixels of the resized screenshot, right and down."""

    dx: int
    dy: int


def shifted_name(sha256: str, shift: Shift) -> str:
    """The name of a frame moved by `shift`."""
    return f"{sha256}@{shift.dx},{shift.dy}" if shift != (0, 0) else sha256


def split_name(name: str) -> tuple[str, Shift]:
    """sha256 and shift of a frame's name."""
    sha256, _, shift = name.partition("@")
    return sha256, Shift(*map(int, shift.split(","))) if shift else Shift(0, 0)


def shift_image(image: np.ndarray, shift: Shift) -> np.ndarray:
    """`image` [height, width, 3] moved; what comes in repeats the edge."""
    height, width = image.shape[:2]
    rows = np.clip(np.arange(height) - shift.dy, 0, height - 1)
    columns = np.clip(np.arange(width) - shift.dx, 0, width - 1)
    return image[rows][:, columns]


def is_shiftable(trajectory: Trajectory) -> bool:
    """True when no action points anywhere and the oracle knows where the window's widgets are."""
    points = any(turn.action is not None and turn.action.x is not None for turn in trajectory.turns)
    return not points and bool(trajectory.task.oracle.get("widgets"))


def random_shift(
    trajectory: Trajectory, image_size: tuple[int, int], rng: random.Random, *, largest: int = 60
) -> Shift:
    """A random shift of at most `largest` pixels that keeps all widgets on the screen."""
    widgets: list[dict[str, Any]] = trajectory.task.oracle["widgets"]
    amounts = []
    for axis, screen, image in zip("xy", trajectory.task.screen, image_size, strict=True):
        scale = image / screen
        low = (MARGIN - min(widget[axis] for widget in widgets)) * scale
        high = (screen - MARGIN - max(widget[axis] for widget in widgets)) * scale
        low, high = max(int(low), -largest), min(int(high), largest)
        amounts.append(rng.randint(low, high) if low < high else 0)
    return Shift(*amounts)


def shifted(trajectory: Trajectory, shift: Shift, image_size: tuple[int, int]) -> Trajectory:
    """`trajectory` on moved screenshots, its oracle's widgets moved with them."""
    screen = trajectory.task.screen
    dx, dy = (round(d * s / i) for d, s, i in zip(shift, screen, image_size, strict=True))
    turns = []
    for turn in trajectory.turns:
        name = shifted_name(turn.observation.sha256, shift)
        turns.append(
            turn.model_copy(update={"observation": turn.observation.model_copy(update={"sha256": name})})
        )
    widgets = [
        {**widget, "x": widget["x"] + dx, "y": widget["y"] + dy}
        for widget in trajectory.task.oracle["widgets"]
    ]
    task = trajectory.task.model_copy(update={"oracle": {**trajectory.task.oracle, "widgets": widgets}})
    return trajectory.model_copy(update={"turns": tuple(turns), "task": task})
