"""The desk host's core: its desktops, how they are made and ended.

Everything runs on one event loop in the main thread; desktops are spawned from it, because they die
with the thread that started them. One lock per desktop orders reset, rebuild and destroy.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from workers.desktops.contract import (
    BootFailed,
    DesktopSpec,
    EnvError,
    ErrorKind,
    Health,
    Provider,
    ProviderDesktop,
)
from workers.desktops.host.desktop_files import DesktopFiles
from workers.desktops.host.desktop_record import DesktopRecord, HeldLease, Kind
from workers.desktops.host.leak_watch import LeakWatch
from workers.desktops.host.messages import BootFailure, DesktopInfo, DesktopStatus, Phase
from workers.desktops.host.warm_pool import WarmPool
from workers.desktops.host_storage import HostStorage
from workers.desktops.registry import PROVIDERS

log = logging.getLogger("deskhost")

MakeDesktop = Callable[[str, DesktopSpec, Path], Awaitable[ProviderDesktop]]
"""`Provider.create`, or another way to make a desktop: name, spec, folder."""

REBUILD_EVERY = 500
"""Resets after which a desktop is rebuilt although it is clean: X servers and buses grow slowly."""
START_SLOTS = 3
"""Starting is CPU bound: more at once only makes each slower."""
MAX_RESET_TIMES = 2000


KEPT = 50


class BootFailures:
    """The latest failures of this host's life."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.kept: deque[BootFailure] = deque(maxlen=KEPT)

    def add(self, record: DesktopRecord, error: Exception) -> None:
        """`BootFailed` says more than other errors: how far it came, log, picture of the screen."""
        failure = BootFailure(
            number=next(self._numbers),
            at=time.time(),
            desktop_id=record.desktop_id,
            provider=record.provider,
            reason=str(error),
        )
        if isinstance(error, BootFailed):
            failure.boot_phase = str(error.boot_phase)
            failure.log, failure.screenshot = error.log, error.screenshot
        self.kept.append(failure)


class DeskHost:
    """All desktops of this machine."""

    def __init__(
        self,
        state_dir: Path,
        *,
        max_desktops: int = 16,
        rebuild_every: int = REBUILD_EVERY,
        pool: WarmPool | None = None,
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
        self.desktops: dict[str, DesktopRecord] = {}
        self.started_at = time.monotonic()
        self.pool = pool or WarmPool()
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

    async def make(self, provider: str, spec: DesktopSpec, lease: HeldLease | None = None) -> DesktopRecord:
        """A new desktop, for this lease if any. Raises EnvError (quota) when the host is full."""
        if provider not in self.providers:
            known = ", ".join(self.providers)
            raise EnvError(
                f"provider: there is no {provider!r}; known: {known}", kind=ErrorKind.TASK, permanent=True
            )
        if len(self.desktops) >= self.max_desktops:
            message = f"all {self.max_desktops} desktops of this host exist; release or destroy one"
            raise EnvError(message, kind=ErrorKind.QUOTA)
        desktop_id = f"d{secrets.token_hex(3)}"
        record = DesktopRecord(desktop_id, provider, spec, lease=lease, changed=self.note_change)
        self.desktops[desktop_id] = record
        async with record.lock:
            try:
                await self._build(record)
            except BaseException:
                self.desktops.pop(desktop_id, None)
                self.note_change()
                raise
        return record

    async def _build(self, record: DesktopRecord, make: MakeDesktop | None = None) -> None:
        """Start a new generation; the old one must be gone. Caller holds the lock."""
        make = make or self.providers[record.provider].create
        record.enter(Phase.STARTING)
        record.generation += 1
        name = f"{record.desktop_id}-{record.generation}"
        try:
            async with self._starting:
                folder = self.files.folders / name
                instance = await make(name, record.spec, folder)
        except (EnvError, OSError) as exc:
            if getattr(exc, "kind", None) is not ErrorKind.QUOTA:  # no room is no fault of the desktop
                self.count_failure(record)
                self.boot_failures.add(record, exc)
            record.reason = str(exc)
            record.enter(Phase.DEAD)
            raise exc if isinstance(exc, EnvError) else EnvError(f"cannot start a desktop: {exc}") from exc
        self.files.pids.add(name, instance.pid, instance.cgroups)
        record.instance = instance
        record.started_at = time.monotonic()
        record.resets_since_build = 0
        record.is_dirty, record.end_reason, record.rebuild_reason = False, "", ""
        record.is_paused = False
        record.answered_at = time.monotonic()
        record.watcher = self.spawn(self._watch(record, instance, record.generation))
        await record.rest()

    async def _watch(self, record: DesktopRecord, instance: ProviderDesktop, generation: int) -> None:
        """Notice that a desktop died by itself."""
        reason = await instance.wait_dead()
        if record.generation == generation and record.instance is instance:
            self.count_failure(record)
            record.reason = f"desktop {record.desktop_id} died: {record.end_reason or reason}"
            record.enter(Phase.DEAD)
            log.warning("%s", record.reason)

    def count_failure(self, record: DesktopRecord) -> None:
        record.failures += 1
        self.num_failures += 1

    async def _tear_down(self, record: DesktopRecord) -> None:
        """End the current generation. Caller holds the lock."""
        instance, record.instance = record.instance, None
        if record.watcher is not None:
            record.watcher.cancel()
            record.watcher = None
        if instance is not None:
            await instance.destroy()
            self.files.pids.remove(f"{record.desktop_id}-{record.generation}")

    async def replace(
        self, record: DesktopRecord, make: MakeDesktop, *, saved_by: Awaitable[None] | None = None
    ) -> None:
        """A new generation, made as said, for the same lease; `saved_by` is done with the old one first."""
        async with record.lock:
            if record.watcher is not None:
                record.watcher.cancel()  # saving ends it, which is no death
            try:
                if saved_by is not None:
                    await saved_by
            finally:
                await self._tear_down(record)
            await self._build(record, make)
            record.is_dirty = True

    async def rebuild(self, record: DesktopRecord, reason: str) -> None:
        """End this generation because of `reason` and start the next one. Caller holds the lock."""
        record.rebuilds += 1
        record.reason = reason
        log.info("rebuilding %s: %s", record.desktop_id, reason)
        await self.start_generation(record)
        record.is_dirty = record.lease is not None

    async def start_generation(self, record: DesktopRecord) -> None:
        """End this generation and start the next one. Caller holds the lock."""
        await self._tear_down(record)
        await self._build(record)

    def held(self, desktop_id: str, lease_id: str) -> DesktopRecord:
        """The desktop of a lease. Raises EnvError when the lease is over or for another desktop."""
        record = self.by_lease(lease_id)
        if record.desktop_id != desktop_id:
            message = f"lease {lease_id} is for desktop {record.desktop_id}, not {desktop_id}"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return record

    def by_lease(self, lease_id: str) -> DesktopRecord:
        """The desktop of a lease. Raises EnvError when the lease is over."""
        for record in self.desktops.values():
            if record.lease is not None and record.lease.lease_id == lease_id:
                return record
        raise EnvError("the lease has expired or was released; acquire a new one", kind=ErrorKind.QUOTA)

    def of_kind(self, kind: Kind) -> Iterator[DesktopRecord]:
        return (record for record in self.desktops.values() if record.kind == kind)

    def free_one(self, kind: Kind) -> DesktopRecord | None:
        """A clean desktop of this kind without a lease."""
        return next((record for record in self.of_kind(kind) if record.is_free), None)

    async def destroy(self, desktop_id: str) -> None:
        """End a desktop whether leased or not. Unknown ids are fine: it is gone."""
        record = self.desktops.get(desktop_id)
        if record is None:
            return
        async with record.lock:
            await self._tear_down(record)
            record.enter(Phase.GONE)
            record.lease = None
            self.desktops.pop(desktop_id, None)

    # -- for people --------------------------------------------------------------------------

    def list(self) -> list[DesktopStatus]:
        """Every desktop, oldest first, with its resources as of now."""
        return [self.status(record) for record in self.desktops.values()]

    def status(self, record: DesktopRecord, *, measured: bool = False) -> DesktopStatus:
        status = record.status(measured=measured)
        if record.phase is Phase.STARTING:
            name = f"{record.desktop_id}-{record.generation}"
            status.boot_phase = self.providers[record.provider].boot_phase(name)
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
