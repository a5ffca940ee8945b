"""Keeps a clean-up from deleting files that a backup has still to copy; by the kernel, so it ends with us."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings


@contextmanager
def deletion_held() -> Iterator[None]:
    """Nothing is deleted meanwhile; waits for a deletion that has begun."""
    with _lock_file().open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def deletion_allowed() -> Iterator[bool]:
    """True when files may be deleted in this block; False while a backup is made."""
    with _lock_file().open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lock_file() -> Path:
    path = settings.RUN_DIR / "deletion.lock"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
