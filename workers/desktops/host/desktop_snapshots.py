"""Snapshots of leased desktops: taken while they run, woken up in other leases, dropped.

    snapshot -> the desktop goes on, its state of that moment is kept under a new name
    wake     -> the lease's desktop ends, the next generation goes on from there; any number may
Limits, folders and formats are the provider's matter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Protocol, cast

from training.contracts.config import Capability
from workers.desktops.contract import (
    DesktopSpec,
    EnvError,
    ErrorKind,
    Provider,
    ProviderDesktop,
    ResetReport,
)
from workers.desktops.host.desktop_record import Managed
from workers.desktops.host.host import DeskHost, Make
from workers.desktops.host.messages import KeptSnapshot, ResetResult, SnapshotUse
from workers.desktops.qemu.snapshot_store import SnapshotMeta, SnapshotStore


class SnapshotTaker(Protocol):
    """What a provider with Capability.SNAPSHOT offers for running desktops."""

    snapshots: SnapshotStore

    async def take_snapshot(self, living: ProviderDesktop, label: str) -> SnapshotMeta:
        """Save a desktop as it is now; it goes on."""

    async def check_snapshot(self, spec: DesktopSpec, name: str) -> None:
        """Raises EnvError when a desktop of this kind cannot wake up from it."""

    def from_snapshot(self, name: str) -> Make:
        """Makes a desktop that goes on where the snapshot was taken."""

    def drop_snapshot(self, name: str) -> bool:
        """Remove one and what was made of it; False when there was none."""

    def sweep_snapshots(self) -> None:
        """Remove what was made of dropped ones, as far as no desktop lives on it any more."""


class Snapshots:
    """The snapshots of one host."""

    def __init__(self, host: DeskHost) -> None:
        self._host = host

    async def take(self, desktop_id: str, lease_id: str, label: str) -> KeptSnapshot:
        """Save a leased desktop. Raises EnvError."""
        managed = self._host.leases.held(desktop_id, lease_id)
        provider = _taker(self._host.providers[managed.provider])
        async with managed.lock:
            if managed.living is None:
                raise EnvError(managed.reason or f"desktop {desktop_id} is gone")
            return kept(await provider.take_snapshot(managed.living, label[:200]))

    async def wake(self, desktop_id: str, lease_id: str, name: str) -> ResetResult:
        """Replace a leased desktop by one that goes on from a snapshot. Raises EnvError."""
        started = time.monotonic()
        managed: Managed = self._host.leases.held(desktop_id, lease_id)
        provider = _taker(self._host.providers[managed.provider])
        await provider.check_snapshot(managed.spec, name)  # before anything is torn down
        await self._host.replace(managed, provider.from_snapshot(name))
        report = ResetReport(wall_s=time.monotonic() - started)
        return ResetResult(desktop=managed.info(), report=report)

    async def list(self) -> list[KeptSnapshot]:
        """Every snapshot of every provider, the one that was unused for longest first."""
        found: dict[str, KeptSnapshot] = {}
        for provider in takers(self._host):
            metas = await asyncio.to_thread(provider.snapshots.list)
            found |= {meta.name: kept(meta) for meta in metas}
        return list(found.values())

    async def drop(self, names: Iterable[str]) -> int:
        """Remove these, and what desktops still needed of earlier ones; how many there were."""
        dropped = sum([await self._drop(name) for name in sorted(set(names))])
        for taker in takers(self._host):
            await asyncio.to_thread(taker.sweep_snapshots)
        return dropped

    async def _drop(self, name: str) -> bool:
        for taker in takers(self._host):
            if taker.snapshots.has(name):
                return await asyncio.to_thread(taker.drop_snapshot, name)
        return False


def takers(host: DeskHost) -> list[SnapshotTaker]:
    """The providers whose desktops can be saved while they run."""
    able = [p for p in host.providers.values() if p.info.can(Capability.SNAPSHOT)]
    return [cast("SnapshotTaker", provider) for provider in able]


def use(host: DeskHost) -> SnapshotUse:
    """What snapshots take, all providers together. Walks files: call it from a thread."""
    total = SnapshotUse()
    for store in (taker.snapshots for taker in takers(host)):
        total.count += len(store.list())
        total.size_mb += round(store.size_mb(), 1)
        total.max_count, total.max_mb = store.limits.count, store.limits.mb
    return total


def kept(meta: SnapshotMeta) -> KeptSnapshot:
    """A snapshot as the host tells of it."""
    return KeptSnapshot(
        name=meta.name,
        label=meta.label,
        size_mb=round(meta.size_mb, 1),
        pause_s=meta.pause_s,
        took_s=meta.took_s,
        created_at=meta.created_at,
    )


def _taker(provider: Provider) -> SnapshotTaker:
    if not provider.info.can(Capability.SNAPSHOT):
        message = f"desktops of {provider.info.name} cannot be saved while they run"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
    return cast("SnapshotTaker", provider)
