"""The host's record of one desktop: its phase, lease and counters."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, ProviderDesktop, Usage
from workers.desktops.host.messages import PHASE_TRANSITIONS, DesktopInfo, DesktopStatus, Lease, Phase

LOG_LINES = 40
Kind = tuple[str, DesktopSpec]
"""Provider and spec: desktops of one kind are interchangeable."""


def ignore_change() -> None:
    """Default of `DesktopRecord.changed`."""


@runtime_checkable
class Pausable(Protocol):
    """A provider's desktop that can stand still, and then needs no processor."""

    async def pause(self) -> None:
        """Stand still. Raises EnvError."""

    async def go_on(self) -> None:
        """Go on as if no time had been lost. Raises EnvError."""


@dataclass
class HeldLease:
    """A lease as the host sees it."""

    lease_id: str
    holder: str
    ttl_s: float
    expires_at: float
    """time.monotonic()"""


@dataclass
class DesktopRecord:
    """What the host knows of one desktop."""

    desktop_id: str
    provider: str
    spec: DesktopSpec
    phase: Phase = Phase.STARTING
    reason: str = ""
    generation: int = 0
    instance: ProviderDesktop | None = None
    watcher: asyncio.Task | None = None
    lease: HeldLease | None = None
    resets: int = 0
    resets_since_build: int = 0
    rebuilds: int = 0
    failures: int = 0
    started_at: float = field(default_factory=time.monotonic)
    end_reason: str = ""
    """Why the host itself ended this generation, e.g. its memory."""
    is_dirty: bool = False
    """Something may have happened in it since the last reset."""
    rebuild_reason: str = ""
    """Why it was taken from its holder; it is rebuilt before its next lease."""
    answered_at: float = 0.0
    """time.monotonic() of the last sign of life of its agent."""
    is_paused: bool = False
    """It stands still until it is leased."""
    quarantine: str = ""
    """Why an operator keeps it; never leased and never cleaned while this stands."""
    ready_since: float = 0.0
    """time.monotonic() of its last change to READY."""
    last_reset_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    """As of the last `measure`."""
    cpu_percent: float = 0.0
    measured_at: float = 0.0
    changed: Callable[[], None] = ignore_change
    """Called after each change of phase or lease."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def kind(self) -> Kind:
        return self.provider, self.spec

    @property
    def is_free(self) -> bool:
        """Ready to be leased at once."""
        return self.lease is None and self.phase is Phase.READY and not self.lock.locked()

    @property
    def is_coming(self) -> bool:
        """Will be free soon: booting or being cleaned, without a lease."""
        is_busy = self.phase in (Phase.STARTING, Phase.RESETTING, Phase.LEASED)
        return self.lease is None and is_busy and not self.quarantine

    def enter(self, phase: Phase) -> None:
        """Change the phase along the transition table."""
        if phase is not self.phase:
            assert phase in PHASE_TRANSITIONS[self.phase], f"{self.desktop_id}: {self.phase} -> {phase}"
            self.phase = phase
            if phase is Phase.READY:
                self.ready_since = time.monotonic()
            if phase is Phase.LEASED:
                self.answered_at = time.monotonic()
        self.changed()

    @property
    def resting_phase(self) -> Phase:
        if self.quarantine:
            return Phase.QUARANTINED
        return Phase.LEASED if self.lease else Phase.READY

    def give_to(self, lease: HeldLease) -> None:
        """Lease it; it counts as used from now on."""
        self.lease = lease
        self.is_dirty = True
        self.enter(Phase.LEASED)

    async def rest(self) -> None:
        """It is clean: its holder's, or still until it is leased. Caller holds the lock."""
        if self.resting_phase is Phase.READY and isinstance(self.instance, Pausable):
            with contextlib.suppress(EnvError):  # then it runs on; one that died is noticed as always
                await self.instance.pause()
                self.is_paused = True
        if self.phase is not Phase.DEAD:  # it may have died meanwhile
            self.enter(self.resting_phase)

    async def go_on(self) -> None:
        """It is leased now. Raises EnvError."""
        if self.is_paused and isinstance(self.instance, Pausable):
            self.is_paused = False
            await self.instance.go_on()

    def info(self) -> DesktopInfo:
        return DesktopInfo(
            desktop_id=self.desktop_id,
            provider=self.provider,
            spec=self.spec,
            generation=self.generation,
            endpoints=self.instance.endpoints if self.instance else Endpoints(),
        )

    def leased(self) -> Lease:
        """The lease as its holder gets it."""
        held = self.lease
        assert held is not None
        return Lease(lease_id=held.lease_id, holder=held.holder, ttl_s=held.ttl_s, desktop=self.info())

    def status(self, *, measured: bool = False) -> DesktopStatus:
        """Its row in the fleet list; with the resources of now, or (cheaper) of the last `measure`."""
        status = DesktopStatus(
            info=self.info(),
            phase=self.phase,
            reason=self.reason,
            pid=self.instance.pid if self.instance else 0,
            resets=self.resets,
            rebuilds=self.rebuilds,
            failures=self.failures,
            age_s=round(time.monotonic() - self.started_at, 1),
            usage=self.usage,
            cpu_percent=self.cpu_percent,
            last_reset_s=self.last_reset_s,
            quarantine=self.quarantine,
        )
        if self.instance is not None and not measured:
            status.usage = self.instance.usage()
        if self.phase in (Phase.DEAD, Phase.QUARANTINED):
            status.log = self.console_log()
        if self.lease is not None:
            status.lease_id, status.holder = self.lease.lease_id, self.lease.holder
            left_s = min(self.lease.ttl_s, self.lease.expires_at - time.monotonic())  # endless while it boots
            status.lease_left_s = round(max(0.0, left_s), 1)
        return status

    def console_log(self) -> str:
        """The end of its console log, where its provider keeps one."""
        read = getattr(self.instance, "console_log", None)
        return read(LOG_LINES) if read is not None else ""

    def measure(self) -> None:
        """Look at its resources. Walks its processes: call it from a thread."""
        instance = self.instance
        if instance is None:
            self.usage, self.cpu_percent = Usage(), 0.0
            return
        usage, now = instance.usage(), time.monotonic()
        used_s, passed_s = usage.cpu_s - self.usage.cpu_s, now - self.measured_at
        # A rebuilt desktop's account starts at zero again.
        self.cpu_percent = round(max(0.0, used_s) / passed_s * 100, 1) if self.measured_at else 0.0
        self.usage, self.measured_at = usage, now

    def end(self, reason: str) -> None:
        """SIGKILL; its watcher notices and records the reason."""
        if self.instance is None or self.phase is Phase.DEAD:
            return
        self.end_reason = reason
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.instance.pid, signal.SIGKILL)

    def end_if_over_memory(self) -> None:
        """Where no memory group does it, end a desktop that uses more than its spec allows."""
        if self.instance is None or self.phase is Phase.DEAD:
            return
        limit_mb = self.instance.memory_limit_mb
        if self.usage.rss_mb <= limit_mb:
            return
        used_mb = self.instance.private_mb()  # forked processes share most of what RSS counts for each
        if used_mb > self.instance.memory_limit_mb:
            self.end_reason = (
                f"it used {used_mb:.0f} MiB of its {self.instance.memory_limit_mb:.0f} MiB of memory"
            )
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.instance.pid, signal.SIGKILL)
