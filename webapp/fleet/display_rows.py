"""A host, a worker, a desktop as the fleet page shows it: what is derived of the row for people."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from webapp.fleet.models import (
    Desktop,
    DesktopPhase,
    Host,
    Worker,
    WorkerStatus,
)

LATE = timedelta(seconds=6)
"""Three missed heartbeats of 2 s: the age is marked before the worker counts as lost."""
SILENT = timedelta(seconds=12)
"""A host that no mirror reported for this long is shown as lost."""
LOW_DISK = 0.05
"""Free share of a disk below which it is marked."""


@dataclass(slots=True)
class HostRow:
    """A host and what the page derives of it."""

    host: Host
    num_desktops: int
    num_leased: int
    running: int
    """Trajectories that its workers run now."""

    @property
    def has_desk_host(self) -> bool:
        """False of a joined host that gives GPUs only."""
        return self.host.heartbeat_at is not None

    @property
    def seen_at(self) -> datetime | None:
        """When its desk host reported something, or itself where it has none."""
        joined = getattr(self.host, "joined", None)
        return self.host.heartbeat_at or (joined.heard_at if joined and not joined.revoked_at else None)

    @property
    def is_lost(self) -> bool:
        return self.seen_at is None or timezone.now() - self.seen_at > SILENT

    @property
    def status(self) -> str:
        if self.is_lost or self.host.problem:
            return "lost"
        return drain_status(self.host.is_draining, self.running) or "online"

    @property
    def memory_share(self) -> float:
        return self.host.memory_used_mb / self.host.memory_mb if self.host.memory_mb else 0.0

    @property
    def disk_share(self) -> float:
        return 1 - self.host.disk_free_mb / self.host.disk_mb if self.host.disk_mb else 0.0

    @property
    def is_disk_low(self) -> bool:
        return self.disk_share > 1 - LOW_DISK

    @property
    def pool(self) -> list[dict[str, Any]]:
        """Kinds of desktops that are there, wanted, or in trouble; the report keeps all that ever were."""
        counts = ("leased", "ready", "coming", "wanted")
        return [kind for kind in self.host.pool if kind["problem"] or any(kind[name] for name in counts)]

    @property
    def providers(self) -> list[dict[str, Any]]:
        """Each with (reason, remedy) pairs."""
        return [
            {**provider, "notes": list(zip(provider["reasons"], provider["remedies"], strict=False))}
            for provider in self.host.providers
        ]


@dataclass(slots=True)
class WorkerRow:
    """A worker and what it holds."""

    worker: Worker
    num_desktops: int
    running: int

    @property
    def is_late(self) -> bool:
        is_online = self.worker.status == WorkerStatus.ONLINE
        return is_online and timezone.now() - self.worker.heartbeat_at > LATE

    @property
    def status(self) -> str:
        if self.worker.status != WorkerStatus.ONLINE:
            return self.worker.status
        return drain_status(self.worker.is_draining, self.running) or "online"


def drain_status(is_draining: bool, running: int) -> str:
    """ "draining" while something still runs, then "drained"; "" when it is not drained."""
    if not is_draining:
        return ""
    return "draining" if running else "drained"


@dataclass(slots=True)
class DesktopRow:
    """A desktop with its latest trajectory where the team may see it."""

    desktop: Desktop
    trajectory: Any
    """None: there is none, or it belongs to another team."""
    is_foreign: bool
    """Another team uses it now."""
    is_idle: bool = False
    """No trajectory runs on it."""

    @property
    def is_warm(self) -> bool:
        """An env worker keeps it for what comes next."""
        return (
            self.is_idle and self.desktop.phase == DesktopPhase.LEASED and self.desktop.worker_id is not None
        )

    @property
    def is_live(self) -> bool:
        """A trajectory of ours runs on it."""
        in_use = self.desktop.phase in (DesktopPhase.LEASED, DesktopPhase.RESETTING)
        return bool(self.trajectory and self.trajectory.ended_at is None and in_use)

    @property
    def frame(self) -> str:
        """What to show of its screen: the last frame, unless it was cleaned since."""
        is_clean = self.desktop.phase in (DesktopPhase.READY, DesktopPhase.STARTING)
        return "" if is_clean or self.trajectory is None else self.trajectory.last_frame

    @property
    def state(self) -> str:
        """One word for people: what its trajectory does, else its phase."""
        if self.desktop.quarantine:
            return "quarantined"
        if self.is_live:
            return str(self.trajectory.status)
        if self.is_warm:
            return "kept warm"
        return self.desktop.boot_phase or self.desktop.phase

    @property
    def owner(self) -> str:
        """Worker without its machine's name, and thread."""
        return self.desktop.holder.replace(f"@{self.desktop.host}/", " ").replace(
            "ThreadPoolExecutor", "slot"
        )
