"""What the host does by itself, twice a second: expire leases, keep the pool, measure, look for leaks."""

import asyncio
import logging
import time
from collections.abc import Iterable

import psutil

from workers.desktops.contract import EnvError
from workers.desktops.host.desktop_record import DesktopRecord, Kind
from workers.desktops.host.host import START_SLOTS, DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.messages import Phase
from workers.desktops.host.silent_desktops import check_answers, leased_desktops

log = logging.getLogger("deskhost")

TICK_S = 0.5
LEASE_TICK_S = 0.25
LATE_S = 1.0
MEASURE_TICKS = 4
LEAK_TICKS = 10
ANSWER_TICKS = 8
POOL_SLOTS = START_SLOTS - 1
"""The pool leaves one start to a request that waits."""


class PeriodicChecks:
    """Runs beside one host for its whole life."""

    def __init__(self, host: DeskHost, leases: Leases) -> None:
        self.host = host
        self._leases = leases
        self._building = 0
        self._measuring: asyncio.Task | None = None

    async def run(self) -> None:
        """Until cancelled. Leases are watched by a task of their own: nothing slow may delay their end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch_leases())
            group.create_task(self.run_rounds())

    async def watch_leases(self) -> None:
        asked_at = time.monotonic()
        while True:
            self._leases.expire(list(self.host.desktops.values()))
            await asyncio.sleep(LEASE_TICK_S)
            late_s, asked_at = time.monotonic() - asked_at - LEASE_TICK_S, time.monotonic()
            if late_s > LATE_S:
                log.warning("the desk host's loop was blocked for %.1f s", late_s)

    async def run_rounds(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(TICK_S)
            self.end_dead()
            await self.adjust_pool()
            if self._measuring is None or self._measuring.done():
                # Beside this loop: on a busy machine it takes seconds.
                rounds += 1
                self._measuring = self.host.spawn(self.measure_and_check(rounds))

    def end_dead(self) -> None:
        """End dead desktops without a lease."""
        for record in list(self.host.desktops.values()):
            is_unused = record.lease is None and not record.quarantine
            if is_unused and record.phase is Phase.DEAD and not record.lock.locked():
                self.host.spawn(self.host.destroy(record.desktop_id))

    async def adjust_pool(self) -> None:
        """Build what the pool wants, give up what it does not."""
        host = self.host
        if host.is_draining:
            for record in [record for record in host.desktops.values() if record.is_free]:
                await host.destroy(record.desktop_id)
            return
        for record in host.pool.to_give_up(host.desktops.values()):
            log.info("giving up %s: it was not needed", record.desktop_id)
            await host.destroy(record.desktop_id)
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

    async def measure_and_check(self, round_number: int) -> None:
        """Resources, answers of agents and leaks, each every few rounds. A round may fail."""
        try:
            if round_number % MEASURE_TICKS == 0:
                await asyncio.to_thread(_measure, list(self.host.desktops.values()))
            if round_number % ANSWER_TICKS == 0:
                for record in leased_desktops(self.host):
                    self.host.spawn(check_answers(record))
            if round_number % LEAK_TICKS == 0:
                names = [f"{m.desktop_id}-{m.generation}" for m in self.host.desktops.values()]
                await asyncio.to_thread(self.host.leak_watch.look, names)
        except (OSError, psutil.Error) as exc:
            log.warning("desktops were not measured: %s", exc)


def _measure(desktops: Iterable[DesktopRecord]) -> None:
    for record in desktops:
        record.measure()
        record.end_if_over_memory()
