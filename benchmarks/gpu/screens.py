"""Drawn desktops with windows, lines of text and buttons: as detailed as recorded screenshots are.

png = screen_png(7)                     # drawn, a tenth of a second
png = mixed_png(screens, 7)             # put together of drawn ones, in milliseconds
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WORDS = [
    "file",
    "edit",
    "view",
    "save",
    "open",
    "settings",
    "sound",
    "network",
    "user",
    "name",
    "address",
    "report",
    "table",
    "total",
    "page",
]


def screen_png(seed: int, size: tuple[int, int] = (1312, 736)) -> bytes:
    """The screen of `seed` as a PNG of (width, height) pixels; another seed, another screen."""
    return _png(screen(seed, size))


def mixed_png(screens: list[Image.Image], number: int) -> bytes:
    """A screen of its own for every `number`: two of `screens` beside each other, and the number."""
    count = len(screens)
    left, right = screens[number % count], screens[number // count % count]
    width, height = left.size
    image = left.copy()
    middle = width // 4 + number * 7 % (width // 2)
    image.paste(right.crop((middle, 0, width, height)), (middle, 0))
    ImageDraw.Draw(image).text((4, 4), str(number), fill="white", font=ImageFont.load_default())
    return _png(image)


def screen(seed: int, size: tuple[int, int]) -> Image.Image:
    """The screen of `seed`."""
    rng = np.random.default_rng(seed)
    width, height = size
    image = Image.new("RGB", size, _colour(rng, 40, 120))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default()
    for _ in range(4):
        x, y = int(rng.integers(0, width // 2)), int(rng.integers(0, height // 2))
        w, h = int(rng.integers(width // 4, width // 2)), int(rng.integers(height // 4, height // 2))
        pen.rectangle((x, y, x + w, y + h), fill=_colour(rng, 225, 255), outline=(60, 60, 60))
        pen.rectangle((x, y, x + w, y + 22), fill=_colour(rng, 60, 160))
        pen.text((x + 8, y + 5), _line(rng, 4), fill="white", font=font)
        for top in range(y + 30, y + h - 30, 15):
            pen.text((x + 10, top), _line(rng, max(2, w // 60)), fill=(20, 20, 20), font=font)
        pen.rectangle((x + w - 90, y + h - 26, x + w - 10, y + h - 6), fill=_colour(rng, 80, 200))
        pen.text((x + w - 70, y + h - 22), _line(rng, 1), fill="white", font=font)
    return image


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _line(rng: np.random.Generator, count: int) -> str:
    return " ".join([*rng.choice(WORDS, count), str(rng.integers(10_000))])


def _colour(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    red, green, blue = (int(part) for part in rng.integers(low, high, 3))
    return red, green, blue
