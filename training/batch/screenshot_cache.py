"""Screenshots for the trainer: the lossless PNGs by sha256, as patch values, with a small cache."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from training.batch.byte_patches import BytePatches
from training.render.renderer import Renderer
from training.render.shift_augmentation import Shift, shift_image, split_name

CACHE_BYTES = 512 * 1024**2
"""Resized screenshots kept: one of 256 x 192 pixels takes 147 KB (its patch values would take 1.2 MB)."""


class ScreenshotCache:
    """sha256 (or the name of a shifted frame) -> patch values; reads the frames folder, else asks `fetch`.

    May be called from several threads at once.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        directory: Path | None = None,
        fetch: Callable[[str], bytes] | None = None,
    ) -> None:
        self._renderer = renderer
        self._directory = directory
        self._fetch = fetch
        self._cache: OrderedDict[str, np.ndarray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __call__(self, name: str) -> np.ndarray:
        """Patch values of one screenshot, [rows, values]; raises FileNotFoundError for an unknown name."""
        return self._renderer.patches(self._image(name))

    def as_bytes(self, device: torch.device) -> BytePatches:
        """The same screenshots as bytes, for a trainer on `device`."""
        return BytePatches(
            rows=lambda name: self._renderer.byte_rows(self._image(name)),
            levels=torch.from_numpy(self._renderer.levels()).to(device),
            frames=self._renderer.frames_per_row,
        )

    def clear(self) -> None:
        """Forget all screenshots: the next ones are read and decoded again."""
        with self._lock:
            self._cache.clear()
            self._bytes = 0

    def _image(self, name: str) -> np.ndarray:
        """One screenshot resized, and moved when its name says so. [height, width, 3], uint8"""
        sha256, shift = split_name(name)
        with self._lock:
            values = self._cache.get(sha256)
            if values is not None:
                self._cache.move_to_end(sha256)
        if values is None:
            values = self.add(sha256, self.png(sha256))
        return values if shift == Shift(0, 0) else shift_image(values, shift)

    def add(self, sha256: str, png: bytes) -> np.ndarray:
        """Put a PNG into the cache under a name of the caller's choice; returns it resized."""
        values = self._renderer.resized(png)
        with self._lock:
            self._bytes += values.nbytes - (self._cache[sha256].nbytes if sha256 in self._cache else 0)
            self._cache[sha256] = values
            while self._bytes > CACHE_BYTES and len(self._cache) > 1:
                _, oldest = self._cache.popitem(last=False)
                self._bytes -= oldest.nbytes
        return values

    def png(self, sha256: str) -> bytes:
        """The lossless PNG. Raises FileNotFoundError, or what `fetch` raises."""
        if self._directory is not None:
            path = self._directory / sha256[:2] / f"{sha256}.png"
            if path.exists():
                return path.read_bytes()
        if self._fetch is None:
            raise FileNotFoundError(f"frame {sha256} is not in {self._directory} (DESKHAND_FRAMES_DIR)")
        return self._fetch(sha256)
