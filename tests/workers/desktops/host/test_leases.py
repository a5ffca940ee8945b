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
from workers.desktops.host.host import DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.messages import Phase
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

    async def pause(self) -> None:
        await asyncio.sleep(self.pause_s)
        self.is_running = False

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


async def test_who_asks_while_the_last_desktop_is_being_paused_gets_it(tmp_path: Path) -> None:
    host = DeskHost(tmp_path, max_desktops=1)
    provider = PausingProvider()
    provider.pause_s = 0.3
    host.providers = {"slow": provider}
    created = asyncio.ensure_future(host.create("slow", SPEC))
    async with asyncio.timeout(20):
        while not any(record.phase is Phase.READY for record in host.desktops.values()):
            await asyncio.sleep(0.01)
        lease = await leases_of(host).acquire("slow", SPEC, "a test", 60)
    assert lease.desktop == await created
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
