"""Snapshots of leased desktops: taken while they run, woken up in other leases, dropped.

    snapshot -> the desktop goes on, its state of that moment is kept under a new name
    wake     -> the lease's desktop ends, the next generation goes on from there; any number may
Limits, folders and formats are the provider's matter.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
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
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.host import DeskHost, MakeDesktop
from workers.desktops.host.messages import KeptSnapshot, ResetResult, SnapshotUse
from workers.desktops.host_storage import SnapshotLimits


class SnapshotFacts(Protocol):
    """What a provider knows of a snapshot."""

    name: str
    label: str
    pause_s: float
    took_s: float
    created_at: float

    @property
    def size_mb(self) -> float:
        """On disk, MiB."""


class SnapshotStore(Protocol):
    """The snapshots that a provider keeps."""

    limits: SnapshotLimits

    def list(self) -> Sequence[SnapshotFacts]:
        """All of them, the one that was unused for longest first."""

    def has(self, name: str) -> bool:
        """Whether it is there."""

    def size_mb(self) -> float:
        """All together, MiB."""


class SnapshotProvider(Protocol):
    """What a provider with Capability.SNAPSHOT offers for running desktops."""

    snapshots: SnapshotStore

    async def take_snapshot(self, instance: ProviderDesktop, label: str) -> SnapshotFacts:
        """Save a desktop as it is now; it goes on."""

    async def check_snapshot(self, spec: DesktopSpec, name: str) -> None:
        """Raises EnvError when a desktop of this kind cannot wake up from it."""

    def from_snapshot(self, name: str) -> MakeDesktop:
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
        record = self._host.held(desktop_id, lease_id)
        provider = _snapshot_provider(self._host.providers[record.provider])
        async with record.lock:
            if record.instance is None:
                raise EnvError(record.reason or f"desktop {desktop_id} is gone")
            return message_of(await provider.take_snapshot(record.instance, label[:200]))

    async def wake(self, desktop_id: str, lease_id: str, name: str) -> ResetResult:
        """Replace a leased desktop by one that goes on from a snapshot. Raises EnvError."""
        started = time.monotonic()
        record: DesktopRecord = self._host.held(desktop_id, lease_id)
        provider = _snapshot_provider(self._host.providers[record.provider])
        await provider.check_snapshot(record.spec, name)  # before anything is torn down
        await self._host.replace(record, provider.from_snapshot(name))
        report = ResetReport(wall_s=time.monotonic() - started)
        return ResetResult(desktop=record.info(), report=report)

    async def list(self) -> list[KeptSnapshot]:
        """Every snapshot of every provider, the one that was unused for longest first."""
        found: dict[str, KeptSnapshot] = {}
        for provider in snapshot_providers(self._host):
            known = await asyncio.to_thread(provider.snapshots.list)
            found |= {facts.name: message_of(facts) for facts in known}
        return list(found.values())

    async def drop(self, names: Iterable[str]) -> int:
        """Remove these, and what desktops still needed of earlier ones; how many there were."""
        dropped = sum([await self._drop(name) for name in sorted(set(names))])
        for provider in snapshot_providers(self._host):
            await asyncio.to_thread(provider.sweep_snapshots)
        return dropped

    async def _drop(self, name: str) -> bool:
        for provider in snapshot_providers(self._host):
            if provider.snapshots.has(name):
                return await asyncio.to_thread(provider.drop_snapshot, name)
        return False


def snapshot_providers(host: DeskHost) -> list[SnapshotProvider]:
    """The providers whose desktops can be saved while they run."""
    able = [p for p in host.providers.values() if p.info.can(Capability.SNAPSHOT)]
    return [cast("SnapshotProvider", provider) for provider in able]


def use(host: DeskHost) -> SnapshotUse:
    """What snapshots take, all providers together. Walks files: call it from a thread."""
    total = SnapshotUse()
    for store in (provider.snapshots for provider in snapshot_providers(host)):
        total.count += len(store.list())
        total.size_mb += round(store.size_mb(), 1)
        total.max_count, total.max_mb = store.limits.count, store.limits.mb
    return total


def message_of(facts: SnapshotFacts) -> KeptSnapshot:
    """A snapshot as the host answers it."""
    return KeptSnapshot(
        name=facts.name,
        label=facts.label,
        size_mb=round(facts.size_mb, 1),
        pause_s=facts.pause_s,
        took_s=facts.took_s,
        created_at=facts.created_at,
    )


def _snapshot_provider(provider: Provider) -> SnapshotProvider:
    if not provider.info.can(Capability.SNAPSHOT):
        message = f"desktops of {provider.info.name} cannot be saved while they run"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
    return cast("SnapshotProvider", provider)
