"""The host's book entry of one desktop: its phase, its lease, its counters."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

from workers.deskhost.models import PHASE_TRANSITIONS, DesktopInfo, DesktopStatus, Lease, Phase
from workers.providers.base import DesktopSpec, Endpoints, ProviderDesktop


@dataclass
class HeldLease:
    """A lease as the host sees it."""

    lease_id: str
    holder: str
    ttl_s: float
    expires_at: float
    """time.monotonic()"""


@dataclass
class Managed:
    """One desktop in the host's book."""

    desktop_id: str
    provider: str
    spec: DesktopSpec
    phase: Phase = Phase.STARTING
    reason: str = ""
    generation: int = 0
    living: ProviderDesktop | None = None
    watcher: asyncio.Task | None = None
    lease: HeldLease | None = None
    resets: int = 0
    resets_since_build: int = 0
    rebuilds: int = 0
    failures: int = 0
    started_at: float = field(default_factory=time.monotonic)
    ended_for: str = ""
    """Why the host itself ended this generation, e.g. its memory."""
    is_dirty: bool = False
    """Something may have happened in it since the last reset."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def enter(self, phase: Phase) -> None:
        """Change the phase along the transition table."""
        if phase is not self.phase:
            assert phase in PHASE_TRANSITIONS[self.phase], f"{self.desktop_id}: {self.phase} -> {phase}"
            self.phase = phase

    @property
    def resting_phase(self) -> Phase:
        return Phase.LEASED if self.lease else Phase.READY

    def info(self) -> DesktopInfo:
        return DesktopInfo(
            desktop_id=self.desktop_id,
            provider=self.provider,
            spec=self.spec,
            generation=self.generation,
            endpoints=self.living.endpoints if self.living else Endpoints(),
        )

    def leased(self) -> Lease:
        """What the holder of the lease is told."""
        held = self.lease
        assert held is not None
        return Lease(lease_id=held.lease_id, holder=held.holder, ttl_s=held.ttl_s, desktop=self.info())

    def status(self) -> DesktopStatus:
        """Its row in the fleet list."""
        status = DesktopStatus(
            info=self.info(),
            phase=self.phase,
            reason=self.reason,
            pid=self.living.pid if self.living else 0,
            resets=self.resets,
            rebuilds=self.rebuilds,
            failures=self.failures,
            age_s=round(time.monotonic() - self.started_at, 1),
        )
        if self.living is not None:
            status.usage = self.living.usage()
        if self.lease is not None:
            status.lease_id, status.holder = self.lease.lease_id, self.lease.holder
            status.lease_left_s = round(max(0.0, self.lease.expires_at - time.monotonic()), 1)
        return status

    def end_if_greedy(self) -> None:
        """Where no memory group does it, end a desktop that uses more than its spec allows."""
        if self.living is None or self.phase is Phase.DEAD:
            return
        if self.living.usage().rss_mb <= self.spec.memory_mb:
            return
        used_mb = self.living.private_mb()  # forked processes share most of what RSS counts for each
        if used_mb > self.spec.memory_mb:
            self.ended_for = f"it used {used_mb:.0f} MiB of its {self.spec.memory_mb} MiB of memory"
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.living.pid, signal.SIGKILL)
