"""A small file system of its own, so that a disk can be filled for real. Needs root."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILLER = ".filler"


class NoGround(Exception):
    """Raised when this user or machine does not allow it; the message says what is missing."""


def do(*command: str) -> None:
    """Run one of the system's tools. Raises NoGround with its words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as exc:
        raise NoGround(f"{command[0]} is not installed") from exc
    if done.returncode:
        raise NoGround(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system in memory at `place`, gone afterwards. Raises NoGround, which skips a test."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    do("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(place))
    try:
        yield place
    finally:
        # What still ends there keeps it busy for a moment: detached now, unmounted when it is gone.
        do("umount", "--lazy", str(place))


@contextmanager
def small_ext4(place: Path, megabytes: int) -> Iterator[Path]:
    """The same in a sparse file, as ext4: for what grows larger than memory. Raises NoGround."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    image = place.with_name(f"{place.name}.ext4")
    with open(image, "wb") as file:
        file.truncate(megabytes << 20)
    try:
        do("mkfs.ext4", "-q", "-m", "0", str(image))
        do("mount", "-o", "loop", str(image), str(place))
        try:
            (place / "lost+found").rmdir()
            place.chmod(0o700)
            yield place
        finally:
            do("umount", "--lazy", str(place))
    finally:
        image.unlink(missing_ok=True)


@contextmanager
def slowed(place: Path, *, stands_s: float = 1.5, goes_s: float = 0.3) -> Iterator[None]:
    """Meanwhile the disk of a `small_ext4` stands still most of the time: what writes there waits."""
    is_over = threading.Event()

    def stand_and_go() -> None:
        while not is_over.is_set():
            do("fsfreeze", "--freeze", str(place))
            is_over.wait(stands_s)
            do("fsfreeze", "--unfreeze", str(place))
            is_over.wait(goes_s)

    thread = threading.Thread(target=stand_and_go)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def leave_free(place: Path, num_bytes: int) -> None:
    """Fill the file system until `num_bytes` are free."""
    size = max(0, free_bytes(place) - num_bytes)
    with open(place / FILLER, "ab") as file:
        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, max(1, size))


def fill(place: Path) -> None:
    """Take the last byte of a file system on which others write, without writing any."""
    size = 1 << 40
    with open(place / FILLER, "wb") as file:
        while size >= 1:
            try:
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
            except OSError:
                size //= 2


def make_room(place: Path) -> None:
    """Give back what `leave_free` or `fill` took."""
    (place / FILLER).unlink(missing_ok=True)


def free_bytes(place: Path) -> int:
    """What is free on its file system."""
    state = os.statvfs(place)
    return state.f_bavail * state.f_frsize
