"""A desk host that says what a test sets, without desktops."""

from __future__ import annotations

from typing import Any

from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, Health, Usage
from workers.desktops.host.messages import (
    BootFailure,
    DesktopInfo,
    DesktopStatus,
    HostHealth,
    HostReport,
    KeptSnapshot,
    Leak,
    Machine,
    Phase,
    ResetTimes,
)


class ReportedHost:
    """What the mirror asks of a desk host."""

    def __init__(self) -> None:
        self.version = 0
        self.is_away = False
        self.desktops: dict[str, DesktopStatus] = {}
        self.machine = Machine(cores=4, memory_mb=8192, disk_mb=1e5, disk_free_mb=5e4)
        self.leaks: list[Leak] = []
        self.failures: list[BootFailure] = []
        self.kept: dict[str, KeptSnapshot] = {}
        self.told: list[tuple[Any, ...]] = []
        """What it was asked to do."""
        self.waits_s: list[float] = []

    def show(self, name: str, *, phase: Phase = Phase.READY, memory_mb: float = 60.0, **values: Any) -> None:
        """A desktop has changed, or has come."""
        info = DesktopInfo(
            desktop_id=name, provider="x11", spec=DesktopSpec(), generation=1, endpoints=Endpoints()
        )
        usage = Usage(rss_mb=memory_mb, processes=9)
        self.desktops[name] = DesktopStatus(info=info, phase=phase, pid=1, usage=usage, **values)
        self.version += 1

    def end(self, name: str) -> None:
        del self.desktops[name]
        self.version += 1

    def watch(self, *, after: int = -1, wait_s: float = 0.0) -> HostReport:
        self.waits_s.append(wait_s)
        if self.is_away:
            raise EnvError("the desk host does not answer")
        health = HostHealth(
            pid=1,
            uptime_s=60.0,
            desktops={},
            max_desktops=8,
            swept=0,
            providers=[Health(provider="x11", usable=True)],
        )
        return HostReport(
            version=self.version,
            health=health,
            machine=self.machine,
            desktops=list(self.desktops.values()),
            resets=ResetTimes(),
            num_resets=0,
            num_failures=0,
            failures=list(self.failures),
            leaks=list(self.leaks),
            pool=[],
        )

    def drain(self, wanted: bool) -> None:
        self.told.append(("drain", wanted))

    def expect(self, provider: str, width: int, height: int, count: int) -> None:
        self.told.append(("expect", provider, count))

    def kill(self, name: str) -> str:
        self.end(name)
        return "ended"

    def snapshots(self) -> dict[str, KeptSnapshot]:
        return dict(self.kept)

    def drop_snapshots(self, names: set[str]) -> None:
        self.told.append(("drop", *sorted(names)))

    def close(self) -> None:
        pass
