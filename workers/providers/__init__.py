"""Desktop providers: one row per technology. Rows import late: a row may need what another host lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workers.providers.base import Provider


@dataclass(frozen=True)
class Places:
    """Folders of one installation that providers may need."""

    images: Path
    """Base images of virtual machines."""
    templates: Path
    """Paused machines."""


def _x11(_places: Places) -> Provider:
    from workers.providers.x11 import X11Provider

    return X11Provider()


def _qemu(places: Places) -> Provider:
    from workers.providers.qemu import QemuProvider

    return QemuProvider(places.images, places.templates)


def _windows(places: Places) -> Provider:
    from workers.providers.qemu_windows import QemuWindowsProvider

    return QemuWindowsProvider(places.images, places.templates)


PROVIDERS: dict[str, Callable[[Places], Provider]] = {
    "x11": _x11,
    "qemu": _qemu,
    "windows": _windows,
}
