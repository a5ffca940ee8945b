"""A small file system of its own for a test, so that a disk can be filled for real. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FILLER = ".filler"


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A tmpfs at `place`, gone afterwards. Skips the test, saying why, where this user may mount nothing."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no file system of its own: mount is not installed")
    if done.returncode:
        pytest.skip(f"no file system of its own: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave_free(place: Path, num_bytes: int) -> None:
    """Fill the file system until `num_bytes` are free."""
    state = os.statvfs(place)
    size = max(0, state.f_bavail * state.f_frsize - num_bytes)
    with open(place / FILLER, "ab") as file:
        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, max(1, size))


def make_room(place: Path) -> None:
    """Give back what `leave_free` took."""
    (place / FILLER).unlink(missing_ok=True)
