"""The desk host's core: desktops, how they are made, cleaned and ended.

Everything runs on one event loop in the main thread; desktops are spawned from it, because they die
with the thread that started them. One lock per desktop orders reset, rebuild and destroy.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from training.contracts.config import Capability
from workers.desktops.contract import (
    DesktopSpec,
    EnvError,
    ErrorKind,
    Health,
    Provider,
    ProviderDesktop,
    ResetReport,
)
from workers.desktops.host.desktop_files import DesktopFiles
from workers.desktops.host.desktop_record import HeldLease, Kind, Managed
from workers.desktops.host.leaks import LeakWatch
from workers.desktops.host.leases import Leasing
from workers.desktops.host.messages import DesktopInfo, DesktopStatus, Phase, ResetResult
from workers.desktops.host.start_failures import BootFailures
from workers.desktops.host.warm_pool import Pool
from workers.desktops.host_storage import HostStorage
from workers.desktops.registry import PROVIDERS

log = logging.getLogger("deskhost")

Make = Callable[[str, DesktopSpec, Path], Awaitable[ProviderDesktop]]
"""`Provider.create`, or another way to make a desktop: name, spec, folder."""

REBUILD_EVERY = 500
"""Resets after which a desktop is rebuilt although it is clean: X servers and buses grow slowly."""
START_SLOTS = 3
"""Starting is CPU bound: more at once only makes each slower."""
MAX_RESET_TIMES = 2000


class DeskHost:
    """All desktops of this machine."""

    def __init__(
        self,
        state_dir: Path,
        *,
        max_desktops: int = 16,
        rebuild_every: int = REBUILD_EVERY,
        pool: Pool | None = None,
        storage: HostStorage | None = None,
    ) -> None:
        self.state_dir = state_dir
        self.files = DesktopFiles(state_dir)
        self.swept = self.files.sweep()
        self.max_desktops = max_desktops
        self.rebuild_every = rebuild_every
        self.providers: dict[str, Provider] = {
            name: make(storage or HostStorage(state_dir / "images", state_dir / "templates"))
            for name, make in PROVIDERS.items()
        }
        self.desktops: dict[str, Managed] = {}
        self.started_at = time.monotonic()
        self.pool = pool or Pool()
        self.leases = Leasing(self)
        self.leak_watch = LeakWatch(self.files)
        self.boot_failures = BootFailures()
        self.is_draining = False
        self.version = 0
        """Raised by every change of a phase or lease."""
        self.changed = asyncio.Event()
        """Set and replaced with each new version."""
        self.reset_times: deque[tuple[float, float]] = deque(maxlen=MAX_RESET_TIMES)
        """(when, how long) of the latest resets."""
        self.num_resets = self.num_failures = 0
        self.probes: tuple[float, list[Health]] | None = None
        """When the providers were last probed for a report, and what they said."""
        self._starting = asyncio.Semaphore(START_SLOTS)
        self._background: set[asyncio.Task] = set()

    def note_change(self) -> None:
        """Wake those who watch."""
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()

    # -- desktops ---------------------------------------------------------------------------

    async def create(self, provider: str, spec: DesktopSpec) -> DesktopInfo:
        """A new desktop without a lease. Raises EnvError (quota) when the host is full."""
        return (await self.make(provider, spec)).info()

    async def make(self, provider: str, spec: DesktopSpec, lease: HeldLease | None = None) -> Managed:
        """A new desktop, for this lease if any. Raises EnvError (quota) when the host is full."""
        if provider not in self.providers:
            known = ", ".join(self.providers)
            raise EnvError(
                f"provider: there is no {provider!r}; known: {known}", kind=ErrorKind.TASK, permanent=True
            )
        if len(self.desktops) >= self.max_desktops:
            message = f"all {self.max_desktops} desktops of this host exist; release or destroy one"
            raise EnvError(message, kind=ErrorKind.QUOTA)
        managed = Managed(f"d{secrets.token_hex(3)}", provider, spec, lease=lease, changed=self.note_change)
        self.desktops[managed.desktop_id] = managed
        async with managed.lock:
            try:
                await self._build(managed)
            except BaseException:
                self.desktops.pop(managed.desktop_id, None)
                self.note_change()
                raise
        return managed

    async def _build(self, managed: Managed, make: Make | None = None) -> None:
        """Start a new generation; the old one must be gone. Caller holds the lock."""
        make = make or self.providers[managed.provider].create
        managed.enter(Phase.STARTING)
        managed.generation += 1
        name = f"{managed.desktop_id}-{managed.generation}"
        try:
            async with self._starting:
                folder = self.files.folders / name
                living = await make(name, managed.spec, folder)
        except (EnvError, OSError) as exc:
            if getattr(exc, "kind", None) is not ErrorKind.QUOTA:  # no room is no fault of the desktop
                self._count_failure(managed)
                self.boot_failures.add(managed, exc)
            managed.reason = str(exc)
            managed.enter(Phase.DEAD)
            raise exc if isinstance(exc, EnvError) else EnvError(f"cannot start a desktop: {exc}") from exc
        self.files.pids.add(name, living.pid, living.cgroups)
        managed.living = living
        managed.started_at = time.monotonic()
        managed.resets_since_build = 0
        managed.is_dirty, managed.ended_for, managed.taken_because = False, "", ""
        managed.is_paused = False
        managed.heard_at = time.monotonic()
        managed.watcher = self.spawn(self._watch(managed, living, managed.generation))
        managed.enter(managed.resting_phase)
        await managed.pause_if_free()

    async def _watch(self, managed: Managed, living: ProviderDesktop, generation: int) -> None:
        """Notice that a desktop died by itself."""
        reason = await living.wait_dead()
        if managed.generation == generation and managed.living is living:
            self._count_failure(managed)
            managed.reason = f"desktop {managed.desktop_id} died: {managed.ended_for or reason}"
            managed.enter(Phase.DEAD)
            log.warning("%s", managed.reason)

    def _count_failure(self, managed: Managed) -> None:
        managed.failures += 1
        self.num_failures += 1

    async def _tear_down(self, managed: Managed) -> None:
        """End the current generation. Caller holds the lock."""
        living, managed.living = managed.living, None
        if managed.watcher is not None:
            managed.watcher.cancel()
            managed.watcher = None
        if living is not None:
            await living.destroy()
            self.files.pids.remove(f"{managed.desktop_id}-{managed.generation}")

    async def replace(self, managed: Managed, make: Make, *, saved_by: Awaitable[None] | None = None) -> None:
        """A new generation, made as said, for the same lease; `saved_by` is done with the old one first."""
        async with managed.lock:
            if managed.watcher is not None:
                managed.watcher.cancel()  # saving ends it, which is no death
            try:
                if saved_by is not None:
                    await saved_by
            finally:
                await self._tear_down(managed)
            await self._build(managed, make)
            managed.is_dirty = True

    async def rebuild(self, managed: Managed, reason: str) -> None:
        """End this generation and start the next one. Caller holds the lock."""
        managed.rebuilds += 1
        managed.reason = reason
        log.info("rebuilding %s: %s", managed.desktop_id, reason)
        await self._tear_down(managed)
        await self._build(managed)
        managed.is_dirty = managed.lease is not None

    async def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        """A clean desktop for a lease: this one cleaned, or rebuilt when it is dead or not clean.

        Where cleaning is slow and another one is clean already, the lease moves there.
        """
        managed = self.leases.held(desktop_id, lease_id)
        if (clean := self._clean_instead_of(managed)) is not None:
            lease, managed.lease = managed.lease, None
            assert lease is not None
            clean.give_to(lease)
            await clean.go_on()
            self.spawn(self.clean_or_drop(managed))
            return ResetResult(desktop=clean.info(), report=ResetReport())
        report = await self._reset(managed)
        return ResetResult(desktop=managed.info(), report=report)

    def _clean_instead_of(self, managed: Managed) -> Managed | None:
        if managed.phase is not Phase.LEASED or not self.pool.is_slow(managed.kind):
            return None
        return self.free_one(managed.kind)

    def of_kind(self, kind: Kind) -> Iterator[Managed]:
        """All desktops of this kind."""
        return (managed for managed in self.desktops.values() if managed.kind == kind)

    def free_one(self, kind: Kind) -> Managed | None:
        """A clean desktop of this kind that nobody has."""
        return next((managed for managed in self.of_kind(kind) if managed.is_free), None)

    async def clean_or_drop(self, managed: Managed) -> None:
        """Clean a desktop that was given back; one that cannot be cleaned is ended."""
        try:
            await self._reset(managed, only_if_free=True)
        except EnvError as exc:
            log.warning("dropping %s: %s", managed.desktop_id, exc)
            await self.destroy(managed.desktop_id)

    async def _reset(self, managed: Managed, *, only_if_free: bool = False) -> ResetReport:
        started = time.monotonic()
        async with managed.lock:
            if only_if_free and (managed.lease is not None or not managed.is_dirty or managed.quarantine):
                return ResetReport()  # cleaned, perhaps leased again, while we waited for the lock
            if managed.quarantine:
                message = f"desktop {managed.desktop_id} is in quarantine: {managed.quarantine}"
                raise EnvError(message, kind=ErrorKind.QUOTA)
            if managed.phase is Phase.GONE:
                raise EnvError(f"desktop {managed.desktop_id} was destroyed", kind=ErrorKind.QUOTA)
            managed.resets += 1
            managed.resets_since_build += 1
            report = await self._reset_in_place(managed)
            if isinstance(report, ResetReport):
                managed.enter(managed.resting_phase)
            else:
                await self.rebuild(managed, report)
                report = ResetReport(rebuilt=True, reason=report)
            managed.is_dirty = managed.lease is not None
            report.wall_s = managed.last_reset_s = time.monotonic() - started
        self.num_resets += 1
        self.reset_times.append((time.monotonic(), report.wall_s))
        self.pool.note_reset(managed.kind, report.wall_s)
        return report

    async def _reset_in_place(self, managed: Managed) -> ResetReport | str:
        """The report, or why the desktop has to be rebuilt."""
        if managed.phase is Phase.DEAD or managed.living is None:
            return managed.reason or "it was dead"
        if managed.taken_because:
            return managed.taken_because
        if managed.resets_since_build >= self.rebuild_every:
            return f"routine rebuild after {self.rebuild_every} resets"
        managed.enter(Phase.RESETTING)
        if not self.providers[managed.provider].info.can(Capability.RESET_IN_PLACE):
            await self._tear_down(managed)  # a fresh one is the cheapest clean one
            await self._build(managed)
            return ResetReport()
        try:
            return await managed.living.reset()
        except EnvError as exc:
            self._count_failure(managed)
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

    # -- for people --------------------------------------------------------------------------

    def list(self) -> list[DesktopStatus]:
        """Every desktop, oldest first, with its resources as of now."""
        return [self.status(managed) for managed in self.desktops.values()]

    def status(self, managed: Managed, *, measured: bool = False) -> DesktopStatus:
        status = managed.status(measured=measured)
        if managed.phase is Phase.STARTING:
            name = f"{managed.desktop_id}-{managed.generation}"
            status.boot_phase = self.providers[managed.provider].boot_phase(name)
        return status

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task:
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
