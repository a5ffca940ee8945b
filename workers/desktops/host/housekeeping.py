"""What the host does by itself, twice a second: expire leases, keep the pool, measure, look for leaks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

import psutil

from workers.desktops.contract import EnvError
from workers.desktops.host.desktop_record import Kind, Managed
from workers.desktops.host.host import START_SLOTS, DeskHost
from workers.desktops.host.messages import Phase
from workers.desktops.host.silent_desktops import listen, listened_to

log = logging.getLogger("deskhost")

TICK_S = 0.5
LEASE_TICK_S = 0.25
LATE_S = 1.0
MEASURE_TICKS = 4
LEAK_TICKS = 10
VITAL_TICKS = 8
POOL_SLOTS = START_SLOTS - 1
"""Of all starts at once the pool leaves one to somebody who waits."""


class Tender:
    """Looks after one host for its whole life."""

    def __init__(self, host: DeskHost) -> None:
        self.host = host
        self._building = 0
        self._looking: asyncio.Task | None = None

    async def run(self) -> None:
        """Tend until cancelled. Leases have a watch of their own: nothing slow may hold their ends up."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch_leases())
            group.create_task(self.tend())

    async def watch_leases(self) -> None:
        asked_at = time.monotonic()
        while True:
            self.host.leases.expire(list(self.host.desktops.values()))
            await asyncio.sleep(LEASE_TICK_S)
            late_s, asked_at = time.monotonic() - asked_at - LEASE_TICK_S, time.monotonic()
            if late_s > LATE_S:
                log.warning("the desk host stood still for %.1f s", late_s)

    async def tend(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(TICK_S)
            self.end_dead()
            await self.tend_pool()
            if self._looking is None or self._looking.done():
                # Beside this loop: on a busy machine a look takes seconds.
                looks += 1
                self._looking = self.host.spawn(self.look_around(looks))

    def end_dead(self) -> None:
        """End dead desktops that nobody has."""
        for managed in list(self.host.desktops.values()):
            is_nobodys = managed.lease is None and not managed.quarantine
            if is_nobodys and managed.phase is Phase.DEAD and not managed.lock.locked():
                self.host.spawn(self.host.destroy(managed.desktop_id))

    async def tend_pool(self) -> None:
        """Build what the pool wants, give up what it does not."""
        host = self.host
        if host.is_draining:
            for managed in [managed for managed in host.desktops.values() if managed.is_free]:
                await host.destroy(managed.desktop_id)
            return
        for managed in host.pool.to_give_up(host.desktops.values()):
            log.info("giving up %s: nobody needed it", managed.desktop_id)
            await host.destroy(managed.desktop_id)
        room = min(POOL_SLOTS - self._building, host.max_desktops - len(host.desktops))
        for kind in host.pool.to_build(host.desktops.values(), room):
            self._building += 1
            host.spawn(self._build(kind))

    async def _build(self, kind: Kind) -> None:
        problem = ""
        try:
            await self.host.create(*kind)
        except EnvError as exc:
            problem = str(exc)
            log.warning("the pool could not make a desktop: %s", problem)
        finally:
            self._building -= 1
            self.host.pool.note_build(kind, problem)

    async def look_around(self, look: int) -> None:
        """Resources and signs of life at every few looks, leaks now and then. A look may fail."""
        try:
            if look % MEASURE_TICKS == 0:
                await asyncio.to_thread(_measure, list(self.host.desktops.values()))
            if look % VITAL_TICKS == 0:
                for managed in listened_to(self.host):
                    self.host.spawn(listen(managed))
            if look % LEAK_TICKS == 0:
                names = [f"{m.desktop_id}-{m.generation}" for m in self.host.desktops.values()]
                await asyncio.to_thread(self.host.leak_watch.look, names)
        except (OSError, psutil.Error) as exc:
            log.warning("could not look at the desktops: %s", exc)


def _measure(desktops: Iterable[Managed]) -> None:
    for managed in desktops:
        managed.measure()
        managed.end_if_greedy()
