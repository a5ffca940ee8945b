"""Desktop providers: one row per technology. Rows import late: a row may need what another host lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workers.desktops.contract import Provider

if TYPE_CHECKING:
    from workers.desktops.qemu.snapshot_store import SnapshotStore


@dataclass(frozen=True)
class SnapshotLimits:
    """How many states of running machines a host keeps per provider, and how large they may be together."""

    count: int = 128
    mb: int = 8000


@dataclass(frozen=True)
class Places:
    """Folders of one installation that providers may need."""

    images: Path
    """Base images of virtual machines."""
    templates: Path
    """Paused machines."""
    snapshots: Path | None = None
    """States of running machines that somebody keeps; None = beside the templates."""
    snapshot_limits: SnapshotLimits = SnapshotLimits()


def _x11(_places: Places) -> Provider:
    from workers.desktops.x11.provider import X11Provider

    return X11Provider()


def _qemu(places: Places) -> Provider:
    from workers.desktops.qemu.provider import QemuProvider

    return QemuProvider(places.images, places.templates, snapshots=_snapshots(places, "qemu"))


def _windows(places: Places) -> Provider:
    from workers.desktops.windows.provider import QemuWindowsProvider

    return QemuWindowsProvider(places.images, places.templates, snapshots=_snapshots(places, "windows"))


def _snapshots(places: Places, provider: str) -> SnapshotStore:
    from workers.desktops.qemu.snapshot_store import SnapshotStore

    folder = places.snapshots or places.templates.parent / "snapshots"
    return SnapshotStore(folder / provider, places.snapshot_limits)


PROVIDERS: dict[str, Callable[[Places], Provider]] = {
    "x11": _x11,
    "qemu": _qemu,
    "windows": _windows,
}
