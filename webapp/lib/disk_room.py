"""Stops new work before a disk is full: what has to stay free where frames, database and checkpoints lie.

What begins something that grows asks here first: the dispatcher, an env worker before an episode, and
the trainer, through its coordinator, before a checkpoint. What has begun goes on into the room that is left.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings

from webapp.lib.byte_text import read_size, size_text
from webapp.lib.media.media_files import is_bucket


class Kept(StrEnum):
    FRAMES = "frames"
    DATABASE = "database"
    CHECKPOINTS = "checkpoints"


OF_EPISODES = (Kept.FRAMES, Kept.DATABASE)
"""What a trajectory adds to."""


@dataclass(frozen=True, slots=True)
class LeastFree:
    """A watermark: a number of bytes, or a share of the disk."""

    num_bytes: int = 0
    share: float = 0.0

    @classmethod
    def read(cls, text: str) -> LeastFree:
        """Of "2GB", "500MB" or "5%". Raises ValueError that says what is allowed."""
        if not text.strip().endswith("%"):
            return cls(num_bytes=read_size(text))
        try:
            share = float(text.strip()[:-1]) / 100
        except ValueError as exc:
            raise ValueError(f"{text!r} is no share of a disk: write 5% or 2GB") from exc
        if not 0 <= share < 1:
            raise ValueError(f"{text!r} is not between 0% and 100%")
        return cls(share=share)

    def of(self, total_bytes: int) -> int:
        """In bytes, on a disk of that size."""
        return max(self.num_bytes, round(self.share * total_bytes))


@dataclass(frozen=True, slots=True)
class Shortage:
    """A folder whose disk has less room than has to stay free."""

    kept: Kept
    folder: Path
    free_bytes: int
    wanted_bytes: int

    @property
    def missing_bytes(self) -> int:
        return self.wanted_bytes - self.free_bytes

    @property
    def in_short(self) -> str:
        """Without the folder's path: also for those who are not signed in."""
        return f"{self.kept}: {size_text(self.missing_bytes)} missing"

    def __str__(self) -> str:
        return (
            f"{self.kept} in {self.folder}: {size_text(self.free_bytes)} free, "
            f"{size_text(self.wanted_bytes)} needed, {size_text(self.missing_bytes)} missing"
        )


def shortages(*kinds: Kept) -> list[Shortage]:
    """Where room is missing now, of these kinds or of all, once per disk; a few system calls."""
    found: dict[tuple[Kept, int], Shortage] = {}
    for kept in kinds or tuple(Kept):
        for folder in folders_of(kept):
            if (shortage := _shortage(kept, folder)) is not None:
                found.setdefault((kept, nearest_existing(folder).stat().st_dev), shortage)
    return list(found.values())


def shortage_of_checkpoint(folder: Path, num_bytes: int) -> Shortage | None:
    """Set when a checkpoint of that size would leave less than has to stay free."""
    return _shortage(Kept.CHECKPOINTS, folder, num_bytes)


def nearest_existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return path if path.exists() else nearest_existing(path.parent)


def _shortage(kept: Kept, folder: Path, more_bytes: int = 0) -> Shortage | None:
    usage = shutil.disk_usage(nearest_existing(folder))
    wanted = settings.LEAST_FREE[kept].of(usage.total) + more_bytes
    return Shortage(kept, folder, usage.free, wanted) if usage.free < wanted else None


def folders_of(kept: Kept) -> list[Path]:
    """Folders on this machine; a PostgreSQL server and a bucket watch their own."""
    if kept is Kept.FRAMES:
        return [] if is_bucket() else [Path(settings.MEDIA_ROOT)]
    if kept is Kept.CHECKPOINTS:
        return [settings.EXPERIMENTS_DIR, *settings.CHECKPOINT_DIRS]
    path = Path(str(settings.DATABASES["default"]["NAME"]))
    is_file = str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3") and path.is_absolute()
    return [path.parent] if is_file else []
