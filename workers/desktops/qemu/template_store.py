"""Paused machines on disk, from which desktops are cloned.

    TEMPLATES/KEY/{meta.json, ram, state, disk.qcow2, screen.ppm}
`ram` is the machine's memory; clones map it privately, so it is never written to: a template is made
in a folder of its own and renamed into place. `disk.qcow2` is an overlay on its parent template's disk or
on the base image. meta.json holds the exact command line and QEMU version, since a snapshot fits no other.
"""

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.qemu.machine_identity import DISK, RAM
from workers.processes.process_group import start_ticks

log = logging.getLogger("deskhost")

META, STATE, SCREEN = "meta.json", "state", "screen.ppm"
PARTS = (RAM, STATE, DISK, SCREEN)
MIB = 1 << 20
KEEP_FREE_MB = 2048
"""Disk space that no template and no clone may take."""
DEFAULT_LIMIT_MB = 20_000


class TemplateRefused(EnvError):
    """Raised when a template may not be cloned: damaged, or made for another machine. It is made again."""


class TemplateMeta(BaseModel):
    """What a template is and what it needs."""

    key: str
    parent: str = ""
    """Template whose disk this one's disk is an overlay of; "" = the base image's."""
    argv: list[str]
    """QEMU's command line when it was saved."""
    qemu_version: str
    snapshot: str = ""
    """Folder of the snapshot that it was made of, if it was; it goes with it."""
    image: str
    image_sha256: str
    memory_mb: int
    accelerator: str
    sizes: dict[str, int]
    """Bytes of every part, as they must still be."""
    screen_digest: str
    """Fingerprint of the picture with which every clone wakes up."""
    programs: list[str] = []
    """Names of the programs that ran when it was saved."""
    boot_s: float
    """Seconds from power on to a screen at rest (of a task template: of the setup)."""
    created_at: float


class Template:
    """One template that was checked."""

    def __init__(self, folder: Path, meta: TemplateMeta) -> None:
        self.folder = folder
        self.meta = meta

    @property
    def key(self) -> str:
        return self.meta.key


class TemplateStore:
    """The templates of one folder, collected by size; the least recently used goes first."""

    def __init__(self, folder: Path, limit_mb: int = DEFAULT_LIMIT_MB) -> None:
        self.folder = folder
        self.limit_mb = limit_mb
        self._used: Counter[str] = Counter()
        """Living clones per key."""
        self.pinned: Callable[[], set[str]] = set
        """Tells the keys that something else stands on; they are not collected."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        drop_abandoned(self.folder)

    # -- finding ----------------------------------------------------------------------------

    def find(self, key: str, argv: list[str], version: str) -> Template | None:
        """The template of this name, None when there is none. Raises TemplateRefused."""
        folder = self.folder / key
        if not (folder / META).exists():
            return None
        template = Template(folder, self._meta(folder))
        self._check(template, argv, version)
        with contextlib.suppress(OSError):
            os.utime(folder / META)  # the clock of the collector
        return template

    def _meta(self, folder: Path) -> TemplateMeta:
        try:
            return TemplateMeta.model_validate_json((folder / META).read_bytes())
        except (ValidationError, ValueError, OSError) as exc:
            raise TemplateRefused(f"template {folder.name}: {META} cannot be read: {exc}") from exc

    def _check(self, template: Template, argv: list[str], version: str) -> None:
        """QEMU would quietly make an empty memory file where one is missing, and the clone would die."""
        meta = template.meta
        for part in PARTS:
            path = template.folder / part
            size = path.stat().st_size if path.exists() else None
            if size is None or size != meta.sizes.get(part):
                seen = "is missing" if size is None else f"has {size} bytes instead of {meta.sizes.get(part)}"
                raise TemplateRefused(f"template {template.key}: {part} {seen}")
        if (template.folder / RAM).stat().st_mode & 0o600 != 0o600:
            raise TemplateRefused(f"template {template.key}: {RAM} cannot be opened for writing")
        if meta.qemu_version != version:
            message = f"made by QEMU {meta.qemu_version}, this one is {version}"
            raise TemplateRefused(f"template {template.key}: {message}")
        if meta.argv != argv:
            raise TemplateRefused(f"template {template.key}: made for another command line")
        if meta.parent and not (self.folder / meta.parent / DISK).exists():
            raise TemplateRefused(f"template {template.key}: its parent {meta.parent} is gone")

    # -- making -----------------------------------------------------------------------------

    def new_folder(self, memory_mb: int) -> Path:
        """A private folder to make a template in. Raises EnvError (quota) when the disk is too full."""
        self.evict()
        self.guard_disk(memory_mb)
        return new_draft(self.folder)

    def guard_disk(self, needed_mb: int, folder: Path | None = None) -> None:
        """Raise EnvError (quota) rather than fill the disk of `folder`, or else of the templates."""
        folder = folder or self.folder
        free_mb = shutil.disk_usage(folder).free // MIB
        if free_mb < needed_mb + KEEP_FREE_MB:
            message = f"the disk of {folder} has {free_mb} MiB left, {needed_mb + KEEP_FREE_MB} are needed"
            raise EnvError(f"{message}; make room, or lower the limit of templates", kind=ErrorKind.QUOTA)

    def publish(self, folder: Path, meta: TemplateMeta) -> Template:
        """Put a finished folder in its place; replaces one that was refused."""
        for path in folder.iterdir():
            if path.name not in PARTS:
                path.unlink()
        meta.sizes = {part: (folder / part).stat().st_size for part in PARTS}
        for part in PARTS:
            # QEMU opens a clone's memory for writing, although the clone's pages are private.
            (folder / part).chmod(0o600 if part == RAM else 0o400)
        (folder / META).write_text(meta.model_dump_json(indent=1))
        self.remove(meta.key)
        os.rename(folder, self.folder / meta.key)
        self.evict()
        return Template(self.folder / meta.key, meta)

    def remove(self, key: str) -> None:
        """Delete a template. Clones that run keep the files that they have open."""
        shutil.rmtree(self.folder / key, ignore_errors=True)

    # -- collecting -------------------------------------------------------------------------

    def retain(self, key: str) -> None:
        """A clone lives: its template stays."""
        self._used[key] += 1

    def release(self, key: str) -> None:
        self._used[key] -= 1

    def size_mb(self) -> float:
        """Space that all templates take on the disk."""
        return sum(disk_mb(path) for path in self.folder.glob("*/*"))

    def evict(self) -> list[str]:
        """Delete the least recently used ones until the rest fits the limit; returns their keys."""
        removed: list[str] = []
        metas = {path.parent.name: path for path in self.folder.glob("*/meta.json")}
        total = self.size_mb()
        pinned = self.pinned() if total > self.limit_mb else set()
        for key, path in sorted(metas.items(), key=lambda item: used_at(item[1])):
            if total <= self.limit_mb:
                break
            if self._used[key] > 0 or key in pinned or self._has_children(key, set(removed)):
                continue
            total -= sum(disk_mb(part) for part in path.parent.iterdir())
            self.remove(key)
            removed.append(key)
        if removed:
            log.info("removed %d templates to stay below %d MiB", len(removed), self.limit_mb)
        return removed

    def of_snapshots(self) -> list[TemplateMeta]:
        """The templates that were made of snapshots."""
        found = []
        for path in self.folder.glob(f"*/{META}"):
            with contextlib.suppress(TemplateRefused):
                meta = self._meta(path.parent)
                found += [meta] if meta.snapshot else []
        return found

    def remove_unless_needed(self, key: str) -> bool:
        """Delete a template that nothing lives on or stands on; False when something does."""
        is_needed = self._used[key] > 0 or key in self.pinned() or self._has_children(key, set())
        if not is_needed:
            self.remove(key)
        return not is_needed

    def _has_children(self, key: str, removed: set[str]) -> bool:
        for path in self.folder.glob("*/meta.json"):
            if path.parent.name not in removed:
                with contextlib.suppress(OSError, ValueError):
                    if json.loads(path.read_text()).get("parent") == key:
                        return True
        return False


def template_key(parts: dict[str, Any]) -> str:
    """Name of a template: equal contents, equal name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def disk_mb(path: Path) -> float:
    """Space that a file really takes; memory files have holes."""
    try:
        return path.stat().st_blocks * 512 / MIB
    except OSError:
        return 0.0


def used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def new_draft(place: Path) -> Path:
    """A private folder to make one of `place` in; another process can tell whether its maker lives."""
    folder = place / f".making-{os.getpid()}-{start_ticks(os.getpid())}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    return folder


def drop_abandoned(place: Path) -> None:
    """Those of makers that do not run any more."""
    for folder in place.glob(".making-*"):
        pid, start = folder.name.split("-")[1:3]
        if str(start_ticks(int(pid))) != start:
            shutil.rmtree(folder, ignore_errors=True)
