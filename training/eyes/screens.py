"""Drawn screens of the eye test: coloured widgets, one of them red; the same bytes everywhere."""

import functools
import io
import random
from dataclasses import dataclass

from PIL import Image, ImageDraw

from training.observations.turn_text import TREE

Size = tuple[int, int]
SIZES: tuple[Size, ...] = ((1312, 736), (800, 600), (1000, 1400), (1920, 1080))
"""None is square: a swapped resize or position shows."""
NUM_WIDGETS = 24
SIDE = 48
"""Of the target, in pixels."""
COLOURS = ("yellow", "blue", "green", "orange", "purple", "white", "black", "cyan", "brown", "pink")
INSTRUCTION = "Click the red button."


@dataclass(frozen=True, slots=True)
class Screen:
    """One drawn screen."""

    size: Size
    widgets: tuple[tuple[str, int, int], ...]
    """(colour, centre x, centre y); the last one is the red target, and nothing covers it."""

    @property
    def target(self) -> tuple[int, int]:
        return self.widgets[-1][1:]

    def is_hit(self, x: int, y: int) -> bool:
        """Whether a click there is within the target."""
        return all(abs(a - b) <= SIDE // 2 for a, b in zip((x, y), self.target, strict=True))

    def tree(self, num_lines: int) -> str:
        """As the text that a policy reads, of at least `num_lines`; the target is the last one."""
        lines = [f'button "{colour}" {x},{y}' for colour, x, y in self.widgets]
        repeated = [lines[number % (len(lines) - 1)] for number in range(max(0, num_lines - len(lines)))]
        return "\n".join([TREE, *repeated, *lines])


def drawn_screen(size: Size, seed: int = 0) -> Screen:
    """A screen of `size` with its widgets anywhere."""
    rng = random.Random(f"{size}/{seed}")
    places = [tuple(rng.randrange(SIDE, side - SIDE) for side in size) for _ in range(NUM_WIDGETS)]
    colours = [*(rng.choice(COLOURS) for _ in places[1:]), "red"]
    return Screen(size, tuple((colour, x, y) for colour, (x, y) in zip(colours, places, strict=True)))


@functools.lru_cache(maxsize=len(SIZES))
def picture(screen: Screen) -> bytes:
    """PNG of the screen."""
    image = Image.new("RGB", screen.size, (58, 80, 107))
    draw = ImageDraw.Draw(image)
    for number, (colour, x, y) in enumerate(screen.widgets, start=1):
        # All but the target differ in shape: with squares alone a swapped side might not show.
        wide, high = (SIDE, SIDE) if colour == "red" else (SIDE * (1 + number % 3), SIDE // 2)
        draw.rectangle((x - wide // 2, y - high // 2, x + wide // 2, y + high // 2), fill=colour)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
