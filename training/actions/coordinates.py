"""What the numbers in a completion mean: one conversion for every coordinate space."""

import math

from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

Size = tuple[int, int]
Point = tuple[float, float]


def space_size(space: CoordinateSpace, screen: Size, image: Size | None = None) -> Size:
    """Extent of `space` so that its last coordinate is the last pixel of the screen.

    Pixel spaces count from 0 to size - 1; permille counts from 0 to 1000, relative-1000 to 999.
    Raises ValueError for the resized space when the image's size is not given.
    """
    if space is CoordinateSpace.SCREEN:
        return screen
    if space is CoordinateSpace.PERMILLE:
        return 1001, 1001
    if space is CoordinateSpace.RELATIVE:
        return 1000, 1000
    if image is None:
        raise ValueError("coordinate_space resized needs the size of the resized image")
    return image


def convert_point(point: Point, source: Size, target: Size) -> tuple[int, int]:
    """`point` of a grid of `source` extent as the nearest point of a grid of `target` extent.

    Off-grid points stay off-grid (nothing is clamped): the desktop refuses them visibly.
    """
    x, y = (
        math.floor(value * (to - 1) / (of - 1) + 0.5)
        for value, of, to in zip(point, source, target, strict=True)
    )
    return x, y


def model_point(
    x: int, y: int, space: CoordinateSpace, screen: Size, image: Size | None = None, *, grid: int = 1
) -> list[int]:
    """Screen pixels -> the numbers a model writes; permille in multiples of `grid`."""
    point = convert_point((x, y), screen, space_size(space, screen, image))
    if space is CoordinateSpace.PERMILLE:
        return [min(1000, round(value / grid) * grid) for value in point]
    return list(point)


def off_screen_error(action: Action, screen: Size) -> str | None:
    """Why the desktop must refuse `action`: a point outside the screen; None when it may run."""
    width, height = screen
    for x, y in ((action.x, action.y), (action.to_x, action.to_y)):
        if x is None or y is None:
            continue
        if not (0 <= x < width and 0 <= y < height):
            return f"({x}, {y}) is off the {width}x{height} screen"
    return None


def resized_size(screen: Size, min_pixels: int, max_pixels: int, factor: int = 32) -> Size:
    """Size after Qwen's resize: both sides multiples of `factor`, area within the bounds, aspect kept."""
    width, height = screen
    new_w, new_h = (max(factor, round(side / factor) * factor) for side in screen)
    if new_w * new_h > max_pixels:
        scale = math.sqrt(width * height / max_pixels)
        new_w, new_h = (max(factor, math.floor(side / scale / factor) * factor) for side in screen)
    elif new_w * new_h < min_pixels:
        scale = math.sqrt(min_pixels / (width * height))
        new_w, new_h = (math.ceil(side * scale / factor) * factor for side in screen)
    return new_w, new_h
