"""Screenshots on their way to the SGLang servers: raw pixels in a folder in memory that both sides see.

A context of eight turns shows the same seven screenshots again. Through SGLang's own path each request would
carry all of them, decode them, and copy their patch values twice (24 MB each at 1312x736). Here a request
names files; a server reads one when it really has to run the vision tower on it, which is once.

    folder/levels.npy      what the image processor makes of each of the 256 levels. [3, 256], float32
    folder/NAME.npy        one screenshot after the processor's resize. [height, width, 3], uint8
"""

import asyncio
import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

LEVELS = "levels.npy"
PREFIX = "deskhand-images-"
IN_MEMORY = Path("/dev/shm")
MIN_FREE_BYTES = 2 * 1024**3
"""Less free memory there (containers start with 64 MiB) and the folder goes to the disk instead."""


class SpooledScreenshot:
    """One screenshot in the folder; its file goes when the last one who holds this lets go."""

    __slots__ = ("__weakref__", "digest", "name")

    def __init__(self, name: str, digest: str) -> None:
        self.name = name
        """File name without folder."""
        self.digest = digest
        """sha256 of the PNG; what SGLang knows the image by."""


class ScreenshotSpool:
    """The folder of one policy server; for one event loop."""

    def __init__(self, levels: np.ndarray | None, folder: Path | None = None) -> None:
        """`levels`: [3, 256], float32; None for a model that sees no pictures. Without a `folder` a new one
        is made, in memory when it fits."""
        self.folder = folder or new_folder()
        if levels is not None:
            np.save(self.folder / LEVELS, levels)
        self._known: weakref.WeakValueDictionary[str, SpooledScreenshot] = weakref.WeakValueDictionary()
        self._writing: dict[str, asyncio.Task[SpooledScreenshot]] = {}
        self._numbers = itertools.count()
        self._remover = ThreadPoolExecutor(1, thread_name_prefix="spool")
        """Giving three megabytes back takes a millisecond, which the event loop does not have."""

    async def keep(self, png: bytes, write: Callable[[bytes, Path], Awaitable[None]]) -> SpooledScreenshot:
        """The screenshot's handle; `write` makes its file when there is none."""
        digest = hashlib.sha256(png).hexdigest()
        known = self._known.get(digest)
        if known is not None:
            return known
        writing = self._writing.get(digest)
        if writing is None:
            writing = self._writing[digest] = asyncio.ensure_future(self._write(digest, png, write))
            writing.add_done_callback(lambda _: self._writing.pop(digest))
        # Shielded: siblings ask for the same first screenshot at once, and one of them may be cancelled.
        return await asyncio.shield(writing)

    def close(self) -> None:
        """Remove the folder."""
        self._remover.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _write(
        self, digest: str, png: bytes, write: Callable[[bytes, Path], Awaitable[None]]
    ) -> SpooledScreenshot:
        name = f"{digest[:16]}-{next(self._numbers)}.npy"
        image = SpooledScreenshot(name, digest)
        weakref.finalize(image, self._remove, self.folder / name).atexit = False
        await write(png, self.folder / name)
        self._known[digest] = image
        return image

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(RuntimeError):  # closed: the whole folder is gone
            self._remover.submit(path.unlink, missing_ok=True)


def new_folder() -> Path:
    """An empty folder named after this process; those of dead processes are removed."""
    place = _place()
    for old in place.glob(f"{PREFIX}*"):
        pid = old.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))


def _place() -> Path:
    with contextlib.suppress(OSError):
        if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= MIN_FREE_BYTES:
            return IN_MEMORY
    return Path(tempfile.gettempdir())
