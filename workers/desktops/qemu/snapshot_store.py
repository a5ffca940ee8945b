"""Snapshots: what one running machine was at one moment, kept apart from templates because they are small.

    SNAPSHOTS/NAME/{snapshot.json, state, ram.delta, disk.qcow2, screen.ppm}
`ram.delta` holds the pages that differ from the memory of the template of which the machine was a clone,
`disk.qcow2` is a copy of its overlay: each snapshot stands alone on its template, so any of them can be
dropped. They belong to one desk host, in its own folder, bounded in number and size; the one that was
unused for longest goes first.
"""

import contextlib
import logging
import os
import re
import secrets
import shutil
from pathlib import Path

from pydantic import BaseModel, ValidationError

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.host_storage import SnapshotLimits
from workers.desktops.qemu.machine_identity import DISK
from workers.desktops.qemu.template_store import SCREEN, STATE, disk_mb, drop_abandoned, new_draft, used_at

log = logging.getLogger("deskhost")

META, DELTA = "snapshot.json", "ram.delta"
PARTS = (STATE, DELTA, DISK, SCREEN)
NAME = re.compile(r"s[0-9a-f]{16}")
MIB = 1 << 20


class SnapshotGone(EnvError):
    """Raised when a snapshot was dropped, or fits no machine of this host any more."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind=ErrorKind.TASK, permanent=True)


class SnapshotMeta(BaseModel):
    """What a snapshot is and what it needs."""

    name: str
    label: str
    """Whose it is, for people."""
    template: str
    """Key of the template whose memory and disk it changes."""
    argv: list[str]
    qemu_version: str
    screen_digest: str
    """Fingerprint of the picture at that moment."""
    pause_s: float
    """How long the machine stood still for it."""
    took_s: float
    """From the request to a finished snapshot."""
    sizes: dict[str, int] = {}
    created_at: float
    """Wall clock, seconds since the epoch."""

    @property
    def size_mb(self) -> float:
        return sum(self.sizes.values()) / MIB


class SnapshotStore:
    """The snapshots of one folder; everything is read from the disk, so that several may look at it."""

    def __init__(self, folder: Path, limits: SnapshotLimits | None = None) -> None:
        self.folder = folder
        self.limits = limits or SnapshotLimits()
        if folder.is_dir():
            self._remove_abandoned()

    def new_folder(self) -> Path:
        """A private folder to take a snapshot in."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return new_draft(self.folder)

    def publish(self, folder: Path, meta: SnapshotMeta) -> SnapshotMeta:
        """Put a finished folder in its place, and drop the oldest beyond the limits."""
        for path in folder.iterdir():
            if path.name not in PARTS:
                path.unlink()
        meta.sizes = {part: (folder / part).stat().st_size for part in PARTS}
        (folder / META).write_text(meta.model_dump_json(indent=1))
        os.rename(folder, self.folder / meta.name)
        self._drop_oldest(keep=meta.name)
        return meta

    def find(self, name: str) -> SnapshotMeta:
        """The snapshot of this name; it counts as used now. Raises SnapshotGone."""
        if not NAME.fullmatch(name):
            raise SnapshotGone(f"snapshot {name[:40]!r}: there is none of this name")
        folder = self.folder / name
        meta = self._read(folder)
        if meta is None:
            raise SnapshotGone(f"snapshot {name} was dropped from this host")
        for part, size in meta.sizes.items():
            path = folder / part
            if not path.exists() or path.stat().st_size != size:
                raise SnapshotGone(f"snapshot {name} is damaged: {part} is not as it was saved")
        with contextlib.suppress(OSError):
            os.utime(folder / META)
        return meta

    def list(self) -> list[SnapshotMeta]:
        """All of them, the one that was unused for longest first."""
        found = [(used_at(path), path.parent) for path in self.folder.glob(f"*/{META}")]
        metas = (self._read(folder) for _, folder in sorted(found))
        return [meta for meta in metas if meta is not None]

    def has(self, name: str) -> bool:
        """Whether there is one of this name."""
        return bool(NAME.fullmatch(name)) and (self.folder / name).is_dir()

    def drop(self, name: str) -> bool:
        """Remove one; False when there was none."""
        if not self.has(name):
            return False
        folder = self.folder / name
        with contextlib.suppress(FileNotFoundError):
            (folder / META).unlink()  # first: a folder without it is no snapshot any more
        shutil.rmtree(folder, ignore_errors=True)
        return True

    def size_mb(self) -> float:
        """Space that all of them take on the disk."""
        return sum(disk_mb(path) for path in self.folder.glob("s*/*"))

    def templates(self) -> set[str]:
        """Keys of the templates that snapshots stand on."""
        return {meta.template for meta in self.list()}

    def _drop_oldest(self, keep: str) -> None:
        metas = self.list()
        sizes = {
            meta.name: sum(disk_mb(path) for path in (self.folder / meta.name).iterdir()) for meta in metas
        }
        total = sum(sizes.values())
        num_left = len(metas)
        for meta in metas:
            if num_left <= self.limits.count and total <= self.limits.mb:
                return
            if meta.name == keep:
                continue
            self.drop(meta.name)
            num_left -= 1
            total -= sizes[meta.name]
            log.info("dropped snapshot %s (%s): the host keeps no more", meta.name, meta.label)

    def _read(self, folder: Path) -> SnapshotMeta | None:
        try:
            return SnapshotMeta.model_validate_json((folder / META).read_bytes())
        except OSError:
            return None
        except (ValidationError, ValueError) as exc:
            log.warning("%s cannot be read: %s", folder / META, exc)
            return None

    def _remove_abandoned(self) -> None:
        """What is left of takers that do not run any more, and of half-dropped ones."""
        drop_abandoned(self.folder)
        for folder in self.folder.glob("s*"):
            if not (folder / META).exists():
                shutil.rmtree(folder, ignore_errors=True)


def new_name() -> str:
    """A name that no other snapshot has."""
    return f"s{secrets.token_hex(8)}"
