"""Leases end when they end, whatever else the desk host is doing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from workers.deskhost.host import DeskHost
from workers.deskhost.models import Phase
from workers.deskhost.pool import Pool
from workers.deskhost.tending import Tender
from workers.providers.base import Capability, DesktopSpec, Endpoints, Health, ResetReport, Usage

SPEC = DesktopSpec()


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
    name = "slow"
    capabilities = frozenset({Capability.RESET_IN_PLACE})

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def probe(self) -> Health:
        return Health(provider=self.name, usable=True)

    def boot_phase(self, desktop_id: str) -> str:
        return ""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> SlowDesktop:
        return SlowDesktop(self.ended)


async def test_a_lease_ends_although_giving_up_another_desktop_hangs(tmp_path: Path) -> None:
    provider = SlowProvider()
    host = DeskHost(tmp_path, pool=Pool(idle_s=0.0))
    host.providers = {"slow": provider}
    await host.create("slow", SPEC)  # nobody wants it: the pool gives it up, and that hangs
    await host.create("slow", SPEC)
    tending = asyncio.ensure_future(Tender(host).run())
    try:
        async with asyncio.timeout(20):
            while not any(managed.lock.locked() for managed in host.desktops.values()):
                await asyncio.sleep(0.01)
            lease = await host.leases.acquire("slow", SPEC, "a test", 0.2)
            managed = host.desktops[lease.desktop.desktop_id]
            assert managed.phase is Phase.LEASED
            while managed.lease is not None:
                await asyncio.sleep(0.01)
    finally:
        tending.cancel()
        provider.ended.set()
        await host.close()
    assert managed.reason == "its holder a test fell silent"
