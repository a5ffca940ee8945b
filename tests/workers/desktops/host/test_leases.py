"""Leases end when they end, whatever else the desk host is doing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from training.contracts.config import Capability, ProviderInfo
from workers.desktops.contract import (
    DesktopSpec,
    Endpoints,
    EnvError,
    Health,
    ResetReport,
    Usage,
)
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.host import DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.messages import Phase
from workers.desktops.host.operator_calls import Operations
from workers.desktops.host.periodic_checks import PeriodicChecks
from workers.desktops.host.resets import Resets
from workers.desktops.host.warm_pool import WarmPool

SPEC = DesktopSpec()


def leases_of(host: DeskHost) -> Leases:
    return Leases(host, Resets(host))


@dataclass
class SlowDesktop:
    """A desktop whose end takes for ever, as on a machine whose disk hangs."""

    ended: asyncio.Event
    pid: int = 0
    cgroups: list[str] = field(default_factory=list)
    endpoints: Endpoints = field(default_factory=Endpoints)
    memory_limit_mb: float = 1e9

    async def reset(self) -> ResetReport:
        return ResetReport()

    async def wait_dead(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def destroy(self) -> None:
        await self.ended.wait()

    def usage(self) -> Usage:
        return Usage()

    def private_mb(self) -> float:
        return 0.0


class SlowProvider:
    info = ProviderInfo(name="slow", title="Slow", capabilities=frozenset({Capability.RESET_IN_PLACE}))

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def probe(self) -> Health:
        return Health(provider=self.info.name, usable=True)

    def boot_phase(self, desktop_id: str) -> str:
        return ""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> SlowDesktop:
        return SlowDesktop(self.ended)


@dataclass
class PausingDesktop(SlowDesktop):
    """A desktop that can stand still."""

    is_running: bool = True
    goes_on: bool = True
    pause_s: float = 0.0
    is_being_paused: bool = False
    dies: asyncio.Event = field(default_factory=asyncio.Event)

    async def pause(self) -> None:
        self.is_being_paused = True
        await asyncio.sleep(self.pause_s)
        self.is_running = self.is_being_paused = False

    async def wait_dead(self) -> str:
        await self.dies.wait()
        return "it was killed"

    async def go_on(self) -> None:
        if not self.goes_on:
            raise EnvError("it does not answer")
        self.is_running = True


class PausingProvider(SlowProvider):
    pause_s = 0.0

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> PausingDesktop:
        self.ended.set()
        return PausingDesktop(self.ended, pause_s=self.pause_s)


async def test_a_desktop_stands_still_exactly_while_nobody_has_it(tmp_path: Path) -> None:
    host = DeskHost(tmp_path)
    host.providers = {"slow": PausingProvider()}
    desktop_id = (await host.create("slow", SPEC)).desktop_id
    record = host.desktops[desktop_id]
    assert not record.instance.is_running
    await leases_of(host).acquire("slow", SPEC, "a test", 60)
    assert record.lease is not None
    assert record.instance.is_running
    made_for_a_lease = await leases_of(host).acquire("slow", SPEC, "a test", 60)
    assert host.desktops[made_for_a_lease.desktop.desktop_id].instance.is_running
    await host.close()


async def test_a_desktop_that_does_not_go_on_is_taken_back_and_rebuilt(tmp_path: Path) -> None:
    host = DeskHost(tmp_path)
    host.providers = {"slow": PausingProvider()}
    record = host.desktops[(await host.create("slow", SPEC)).desktop_id]
    record.instance.goes_on = False
    with pytest.raises(EnvError, match="does not answer"):
        await leases_of(host).acquire("slow", SPEC, "a test", 60)
    assert record.lease is None
    async with asyncio.timeout(20):
        while record.generation == 1 or not record.is_free:
            await asyncio.sleep(0.01)
    assert (await leases_of(host).acquire("slow", SPEC, "a test", 60)).desktop.generation == 2
    await host.close()


async def being_paused(host: DeskHost) -> DesktopRecord:
    """Waits until the only desktop of the host is being paused."""
    async with asyncio.timeout(20):
        while True:
            for record in host.desktops.values():
                if record.instance is not None and record.instance.is_being_paused:
                    return record
            await asyncio.sleep(0.01)


@pytest.fixture
def slowly_pausing(tmp_path: Path) -> DeskHost:
    host = DeskHost(tmp_path, max_desktops=1)
    provider = PausingProvider()
    provider.pause_s = 0.3
    host.providers = {"slow": provider}
    return host


async def test_who_asks_while_the_last_desktop_is_being_paused_gets_it(slowly_pausing: DeskHost) -> None:
    created = asyncio.ensure_future(slowly_pausing.create("slow", SPEC))
    await being_paused(slowly_pausing)
    async with asyncio.timeout(20):
        lease = await leases_of(slowly_pausing).acquire("slow", SPEC, "a test", 60)
    assert lease.desktop == await created
    await slowly_pausing.close()


@pytest.mark.parametrize("is_reset", [False, True])
async def test_one_that_dies_while_it_is_being_paused_stays_dead(
    slowly_pausing: DeskHost, is_reset: bool
) -> None:
    host = slowly_pausing
    created = asyncio.ensure_future(host.create("slow", SPEC))
    if is_reset:
        await created
        leases = leases_of(host)
        leases.release((await leases.acquire("slow", SPEC, "a test", 60)).lease_id)
    record = await being_paused(host)
    phases: list[Phase] = []
    record.changed = lambda: phases.append(record.phase)
    record.instance.dies.set()
    await created
    async with record.lock:
        assert phases == [record.phase] == [Phase.DEAD]
    await host.close()


async def test_one_that_is_kept_while_it_is_being_paused_goes_on(slowly_pausing: DeskHost) -> None:
    host = slowly_pausing
    created = asyncio.ensure_future(host.create("slow", SPEC))
    record = await being_paused(host)
    await Operations(host, leases_of(host)).quarantine(record.desktop_id, "to look at")
    await created
    assert (record.phase, record.instance.is_running) == (Phase.QUARANTINED, True)
    await host.close()


async def test_a_lease_ends_although_giving_up_another_desktop_hangs(tmp_path: Path) -> None:
    provider = SlowProvider()
    host = DeskHost(tmp_path, pool=WarmPool(idle_s=0.0))
    host.providers = {"slow": provider}
    await host.create("slow", SPEC)  # nobody wants it: the pool gives it up, and that hangs
    await host.create("slow", SPEC)
    checks = asyncio.ensure_future(PeriodicChecks(host, leases_of(host)).run())
    try:
        async with asyncio.timeout(20):
            while not any(record.lock.locked() for record in host.desktops.values()):
                await asyncio.sleep(0.01)
            lease = await leases_of(host).acquire("slow", SPEC, "a test", 0.2)
            record = host.desktops[lease.desktop.desktop_id]
            assert record.phase is Phase.LEASED
            while record.lease is not None:
                await asyncio.sleep(0.01)
    finally:
        checks.cancel()
        provider.ended.set()
        await host.close()
    assert record.reason == "its holder a test fell silent"
