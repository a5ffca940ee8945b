"""Where a desk host keeps the files of virtual machines, and how much of them."""

from dataclasses import dataclass
from pathlib import Path

UNSAFE_OPTION = "--unsafe-desktops"
"""Of the desk host and of `manage.py up`."""


@dataclass(frozen=True)
class SnapshotLimits:
    """How many states of running machines a host keeps per provider, and how large they may be together."""

    count: int = 128
    mb: int = 8000


@dataclass(frozen=True)
class HostStorage:
    """Folders of one installation that providers may need."""

    images: Path
    """Base images of virtual machines."""
    templates: Path
    """Paused machines."""
    snapshots: Path | None = None
    """Kept states of running machines; None = beside the templates."""
    snapshot_limits: SnapshotLimits = SnapshotLimits()
    allows_unsafe: bool = False
    """Desktops that are not isolated are better than none: a person has said so."""

    def snapshots_of(self, provider: str) -> Path:
        """The folder with the snapshots of one provider's machines."""
        return (self.snapshots or self.templates.parent / "snapshots") / provider
