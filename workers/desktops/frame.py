"""A screenshot with its names: what is recorded, shown and given to the policy."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from PIL import Image

from workers.desktops import frame_images
from workers.desktops.desktop_texts import NO_TEXTS, DesktopTexts


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
    unsettled: str | None = None
    """Why it may not be what the last action led to (`workers.desktops.late_repaints.Unsettled`)."""
    texts: DesktopTexts = field(default=NO_TEXTS, repr=False, compare=False)
    """What was read with it."""
    picture: Image.Image | None = field(default=None, repr=False, compare=False)
    """The decoded `png`, where it is at hand."""
    plain: Self | None = field(default=None, repr=False, compare=False)
    """The screenshot that this picture was drawn on; None = it is one."""

    @classmethod
    def of(
        cls,
        image: Image.Image,
        png: bytes = b"",
        taken: tuple[float, float] | None = None,
        before: Self | None = None,
    ) -> Self:
        """The frame of a picture, by the PNG that it came as if any; taken (wall clock, monotonic) or now.

        The PNG of `before` is taken where it shows the same pixels: writing one is the dearest part.
        """
        raw_digest = frame_images.digest(image)
        size = (before.width, before.height) if before else None
        if before is not None and not png and before.raw_digest == raw_digest and size == image.size:
            png, sha256 = before.png, before.sha256
        else:
            png = png or frame_images.png_of(image)
            sha256 = frame_images.sha256(png)
        taken_at, taken_monotonic_s = taken or (time.time(), time.monotonic())
        return cls(
            png=png,
            width=image.width,
            height=image.height,
            sha256=sha256,
            raw_digest=raw_digest,
            taken_at=taken_at,
            taken_monotonic_s=taken_monotonic_s,
            picture=image,
        )

    @cached_property
    def small_grey(self) -> Image.Image:
        """64 x 64 in grey: how far two screens lie apart is measured on these."""
        return frame_images.small_grey(self.image())

    @property
    def pictures(self) -> list[Frame]:
        """What is stored of it: the picture, before it the plain screenshot where that is another one."""
        return [self.plain, self] if self.plain else [self]

    def drawn(self, picture: Image.Image) -> Self:
        """The same moment with another picture of it."""
        png = frame_images.png_of(picture)
        return replace(self, png=png, sha256=frame_images.sha256(png), picture=picture, plain=self)

    def image(self) -> Image.Image:
        """RGB."""
        return self.picture or frame_images.open_png(self.png)
