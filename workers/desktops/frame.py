"""A screenshot with its names: what is recorded, shown and given to the policy."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from PIL import Image

from workers.desktops import frame_images


@dataclass(frozen=True)
class Frame:
    """One screenshot, lossless."""

    png: bytes
    width: int
    height: int
    sha256: str
    """Of `png`; the frame's name everywhere."""
    raw_digest: str
    """Of the pixels; equal digests = equal screens."""
    taken_at: float
    """Wall clock, seconds since the epoch."""
    taken_monotonic_s: float

    @classmethod
    def of(cls, image: Image.Image, png: bytes = b"", taken: tuple[float, float] | None = None) -> Self:
        """The frame of a picture, by the PNG that it came as if any; taken (wall clock, monotonic) or now."""
        png = png or frame_images.png_of(image)
        taken_at, taken_monotonic_s = taken or (time.time(), time.monotonic())
        return cls(
            png=png,
            width=image.width,
            height=image.height,
            sha256=frame_images.sha256(png),
            raw_digest=frame_images.digest(image),
            taken_at=taken_at,
            taken_monotonic_s=taken_monotonic_s,
        )

    def image(self) -> Image.Image:
        return frame_images.open_png(self.png)
