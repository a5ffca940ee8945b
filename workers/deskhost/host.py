"""The desk host's core: desktops, their leases, and who cleans up after whom.

Everything runs on one event loop in the main thread; desktops are spawned from it, because they die
with the thread that started them. One lock per desktop orders reset, rebuild and destroy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import secrets
import time
from pathlib import Path

from workers.deskhost.managed import HeldLease, Managed
from workers.deskhost.models import DesktopInfo, DesktopStatus, HostHealth, Lease, Phase, ResetResult
from workers.deskhost.records import PidRecords
from workers.providers import PROVIDERS
from workers.providers.base import DesktopSpec, EnvError, ErrorKind, Provider, ProviderDesktop, ResetReport

log = logging.getLogger("deskhost")

REBUILD_EVERY = 500
"""Resets after which a desktop is rebuilt although it is clean: X servers and buses grow slowly."""
TICK_S = 0.5
CLEANING_POLL_S = 0.004
MEMORY_TICKS = 4
START_SLOTS = 3
"""Starting is CPU bound: more at once only makes each slower."""


class DeskHost:
    """All desktops of this machine."""

    def __init__(
        self, state_dir: Path, *, max_desktops: int = 16, rebuild_every: int = REBUILD_EVERY
    ) -> None:
        self.records = PidRecords(state_dir)
        self.swept = self.records.sweep()
        self.max_desktops = max_desktops
        self.rebuild_every = rebuild_every
        self.providers: dict[str, Provider] = {name: make() for name, make in PROVIDERS.items()}
        self.desktops: dict[str, Managed] = {}
        self.started_at = time.monotonic()
        self._starting = asyncio.Semaphore(START_SLOTS)
        self._background: set[asyncio.Task] = set()

    # -- desktops ---------------------------------------------------------------------------

    async def create(self, provider: str, spec: DesktopSpec) -> DesktopInfo:
        """A new desktop without a lease. Raises EnvError (quota) when the host is full."""
        return (await self._create(provider, spec)).info()

    async def _create(self, provider: str, spec: DesktopSpec, lease: HeldLease | None = None) -> Managed:
        if provider not in self.providers:
            known = ", ".join(self.providers)
            raise EnvError(
                f"provider: there is no {provider!r}; known: {known}", kind=ErrorKind.TASK, permanent=True
            )
        if len(self.desktops) >= self.max_desktops:
            message = f"all {self.max_desktops} desktops of this host exist; release or destroy one"
            raise EnvError(message, kind=ErrorKind.QUOTA)
        managed = Managed(f"d{secrets.token_hex(3)}", provider, spec, lease=lease)
        self.desktops[managed.desktop_id] = managed
        async with managed.lock:
            try:
                await self._build(managed)
            except BaseException:
                self.desktops.pop(managed.desktop_id, None)
                raise
        return managed

    async def _build(self, managed: Managed) -> None:
        """Start a new generation; the old one must be gone. Caller holds the lock."""
        managed.enter(Phase.STARTING)
        managed.generation += 1
        name = f"{managed.desktop_id}-{managed.generation}"
        try:
            async with self._starting:
                folder = self.records.desktops / name
                living = await self.providers[managed.provider].create(name, managed.spec, folder)
        except (EnvError, OSError) as exc:
            managed.failures += 1
            managed.reason = str(exc)
            managed.enter(Phase.DEAD)
            raise exc if isinstance(exc, EnvError) else EnvError(f"cannot start a desktop: {exc}") from exc
        self.records.add(name, living.pid, living.cgroups)
        managed.living = living
        managed.started_at = time.monotonic()
        managed.resets_since_build = 0
        managed.is_dirty, managed.ended_for = False, ""
        managed.watcher = self._spawn(self._watch(managed, living, managed.generation))
        managed.enter(managed.resting_phase)

    async def _watch(self, managed: Managed, living: ProviderDesktop, generation: int) -> None:
        """Notice that a desktop died by itself."""
        reason = await living.wait_dead()
        if managed.generation == generation and managed.living is living:
            managed.failures += 1
            managed.reason = f"desktop {managed.desktop_id} died: {managed.ended_for or reason}"
            managed.enter(Phase.DEAD)
            log.warning("%s", managed.reason)

    async def _tear_down(self, managed: Managed) -> None:
        """End the current generation. Caller holds the lock."""
        living, managed.living = managed.living, None
        if managed.watcher is not None:
            managed.watcher.cancel()
            managed.watcher = None
        if living is not None:
            await living.destroy()
            self.records.remove(f"{managed.desktop_id}-{managed.generation}")

    async def _rebuild(self, managed: Managed, reason: str) -> None:
        managed.rebuilds += 1
        managed.reason = reason
        log.info("rebuilding %s: %s", managed.desktop_id, reason)
        await self._tear_down(managed)
        await self._build(managed)

    async def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        """Clean the desktop of a lease; rebuild it when it is dead or not clean."""
        managed = self._held(desktop_id, lease_id)
        report = await self._reset(managed)
        return ResetResult(desktop=managed.info(), report=report)

    async def _reset(self, managed: Managed, *, only_if_free: bool = False) -> ResetReport:
        started = time.monotonic()
        async with managed.lock:
            if only_if_free and (managed.lease is not None or not managed.is_dirty):
                return ResetReport()  # cleaned, perhaps leased again, while we waited for the lock
            if managed.phase is Phase.GONE:
                raise EnvError(f"desktop {managed.desktop_id} was destroyed", kind=ErrorKind.QUOTA)
            managed.resets += 1
            managed.resets_since_build += 1
            reason = await self._reset_in_place(managed)
            if isinstance(reason, ResetReport):
                managed.is_dirty = managed.lease is not None
                managed.enter(managed.resting_phase)
                return reason
            await self._rebuild(managed, reason)
            managed.is_dirty = managed.lease is not None
            return ResetReport(rebuilt=True, reason=reason, wall_s=time.monotonic() - started)

    async def _reset_in_place(self, managed: Managed) -> ResetReport | str:
        """The report, or why the desktop has to be rebuilt."""
        if managed.phase is Phase.DEAD or managed.living is None:
            return managed.reason or "it was dead"
        if managed.resets_since_build >= self.rebuild_every:
            return f"routine rebuild after {self.rebuild_every} resets"
        managed.enter(Phase.RESETTING)
        try:
            return await managed.living.reset()
        except EnvError as exc:
            managed.failures += 1
            return f"not clean: {exc}"

    async def destroy(self, desktop_id: str) -> None:
        """End a desktop whether leased or not. Unknown ids are fine: it is gone."""
        managed = self.desktops.get(desktop_id)
        if managed is None:
            return
        async with managed.lock:
            await self._tear_down(managed)
            managed.enter(Phase.GONE)
            managed.lease = None
            self.desktops.pop(desktop_id, None)

    # -- leases -----------------------------------------------------------------------------

    async def acquire(self, provider: str, spec: DesktopSpec, holder: str, ttl_s: float) -> Lease:
        """Lease a clean desktop of this kind, making one if none is free. Raises EnvError (quota)."""
        if not 0 < ttl_s <= 3600:
            raise EnvError(
                "ttl_s must be above 0 and at most 3600 seconds", kind=ErrorKind.TASK, permanent=True
            )
        held = HeldLease(secrets.token_hex(8), holder, ttl_s, time.monotonic() + ttl_s)
        await self._wait_for_cleaning(provider, spec)
        for managed in self.desktops.values():
            same = managed.provider == provider and managed.spec == spec
            if same and managed.lease is None and managed.phase is Phase.READY and not managed.lock.locked():
                managed.lease = held
                managed.enter(Phase.LEASED)
                managed.is_dirty = True
                return managed.leased()
        await self._make_room(provider, spec)
        held.expires_at = math.inf  # starts to count when the holder gets it
        managed = await self._create(provider, spec, held)
        held.expires_at = time.monotonic() + ttl_s
        managed.is_dirty = True
        return managed.leased()

    async def _wait_for_cleaning(self, provider: str, spec: DesktopSpec) -> None:
        """While one is just being cleaned, wait: it is there sooner than a new one."""
        while True:
            free = [m for m in self.desktops.values() if m.lease is None]
            phases = {m.phase for m in free if (m.provider, m.spec) == (provider, spec)}
            if Phase.READY in phases or not phases & {Phase.LEASED, Phase.RESETTING}:
                return
            await asyncio.sleep(CLEANING_POLL_S)

    async def _make_room(self, provider: str, spec: DesktopSpec) -> None:
        """On a full host, give up a free desktop of another kind or a dead one."""
        if len(self.desktops) < self.max_desktops:
            return
        for managed in list(self.desktops.values()):
            if (
                managed.lease is None
                and managed.phase in (Phase.READY, Phase.DEAD)
                and not managed.lock.locked()
            ):
                await self.destroy(managed.desktop_id)
                return

    def renew(self, lease_id: str, ttl_s: float | None = None) -> Lease:
        """Extend a lease from now. Raises EnvError (quota) when it has expired."""
        managed = self._by_lease(lease_id)
        held = managed.lease
        assert held is not None
        held.ttl_s = ttl_s or held.ttl_s
        held.expires_at = time.monotonic() + held.ttl_s
        return managed.leased()

    async def release(self, lease_id: str) -> None:
        """Give a desktop back; it is cleaned in the background. An expired lease is fine."""
        with contextlib.suppress(EnvError):
            self._give_back(self._by_lease(lease_id))

    def _give_back(self, managed: Managed) -> None:
        """Clean before the next holder can have it: it stays out of READY until then."""
        managed.lease = None
        self._spawn(self._clean_or_drop(managed))

    async def _clean_or_drop(self, managed: Managed) -> None:
        try:
            await self._reset(managed, only_if_free=True)
        except EnvError as exc:
            log.warning("dropping %s: %s", managed.desktop_id, exc)
            await self.destroy(managed.desktop_id)

    def _by_lease(self, lease_id: str) -> Managed:
        for managed in self.desktops.values():
            if managed.lease is not None and managed.lease.lease_id == lease_id:
                return managed
        raise EnvError("the lease has expired or was released; acquire a new one", kind=ErrorKind.QUOTA)

    def _held(self, desktop_id: str, lease_id: str) -> Managed:
        managed = self._by_lease(lease_id)
        if managed.desktop_id != desktop_id:
            message = f"lease {lease_id} is for desktop {managed.desktop_id}, not {desktop_id}"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return managed

    # -- looking after everything -----------------------------------------------------------

    async def tend(self) -> None:
        """Expire leases and end desktops above their memory; runs for the host's whole life."""
        tick = 0
        while True:
            await asyncio.sleep(TICK_S)
            tick += 1
            now = time.monotonic()
            for managed in list(self.desktops.values()):
                if managed.lease is not None and managed.lease.expires_at < now:
                    log.warning("lease of %s by %s expired", managed.desktop_id, managed.lease.holder)
                    self._give_back(managed)
                if managed.lease is None and managed.phase is Phase.DEAD and not managed.lock.locked():
                    await self.destroy(managed.desktop_id)
                if tick % MEMORY_TICKS == 0:
                    managed.end_if_greedy()

    def list(self) -> list[DesktopStatus]:
        """Every desktop, oldest first."""
        return [managed.status() for managed in self.desktops.values()]

    def health(self) -> HostHealth:
        counts: dict[Phase, int] = {}
        for managed in self.desktops.values():
            counts[managed.phase] = counts.get(managed.phase, 0) + 1
        return HostHealth(
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self.started_at, 1),
            desktops=counts,
            max_desktops=self.max_desktops,
            swept=self.swept,
            providers=[provider.probe() for provider in self.providers.values()],
        )

    def _spawn(self, work) -> asyncio.Task:
        """Run something beside the requests; kept, so that it is not collected."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def close(self) -> None:
        """End every desktop."""
        for desktop_id in list(self.desktops):
            await self.destroy(desktop_id)
        for task in list(self._background):
            task.cancel()
