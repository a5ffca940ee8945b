"""How a used desktop becomes clean: cleaned in place, rebuilt, or its lease moved to another."""

import logging
import time

from training.contracts.config import Capability
from workers.desktops.contract import EnvError, ErrorKind, NotClean, ResetReport
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.host import DeskHost
from workers.desktops.host.messages import Phase, ResetResult

log = logging.getLogger("deskhost")


class Resets:
    """The resets of one host."""

    def __init__(self, host: DeskHost) -> None:
        self._host = host

    async def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        """A clean desktop for a lease: this one cleaned, or rebuilt when it is dead or not clean.

        Where cleaning is slow and another one is clean already, the lease moves there.
        """
        record = self._host.held(desktop_id, lease_id)
        if (clean := self._clean_instead_of(record)) is not None:
            lease, record.lease = record.lease, None
            assert lease is not None
            clean.give_to(lease)
            await clean.go_on()
            self._host.spawn(self.clean_or_drop(record))
            return ResetResult(desktop=clean.info(), report=ResetReport())
        report = await self._reset(record)
        return ResetResult(desktop=record.info(), report=report)

    def _clean_instead_of(self, record: DesktopRecord) -> DesktopRecord | None:
        if record.phase is not Phase.LEASED or not self._host.pool.is_slow(record.kind):
            return None
        return self._host.free_one(record.kind)

    async def clean_or_drop(self, record: DesktopRecord) -> None:
        """Clean a desktop that was given back; one that cannot be cleaned is ended."""
        try:
            await self._reset(record, only_if_free=True)
        except EnvError as exc:
            log.warning("dropping %s: %s", record.desktop_id, exc)
            await self._host.destroy(record.desktop_id)

    async def _reset(self, record: DesktopRecord, *, only_if_free: bool = False) -> ResetReport:
        started = time.monotonic()
        async with record.lock:
            if only_if_free and (record.lease is not None or not record.is_dirty or record.quarantine):
                return ResetReport()  # cleaned, perhaps leased again, while we waited for the lock
            if record.quarantine:
                message = f"desktop {record.desktop_id} is in quarantine: {record.quarantine}"
                raise EnvError(message, kind=ErrorKind.QUOTA)
            if record.phase is Phase.GONE:
                raise EnvError(f"desktop {record.desktop_id} was destroyed", kind=ErrorKind.QUOTA)
            record.resets += 1
            record.resets_since_build += 1
            report = await self._reset_in_place(record)
            if isinstance(report, str):
                await self._host.rebuild(record, report)
                report = ResetReport(rebuilt=True, reason=report)
            record.is_dirty = record.lease is not None
            report.wall_s = record.last_reset_s = time.monotonic() - started
        self._host.num_resets += 1
        self._host.reset_times.append((time.monotonic(), report.wall_s))
        self._host.pool.note_reset(record.kind, report.wall_s)
        return report

    async def _reset_in_place(self, record: DesktopRecord) -> ResetReport | str:
        """The report, or why the desktop has to be rebuilt."""
        if record.phase is Phase.DEAD or record.instance is None:
            return record.reason or "it was dead"
        if record.rebuild_reason:
            return record.rebuild_reason
        if record.resets_since_build >= self._host.rebuild_every:
            return f"routine rebuild after {self._host.rebuild_every} resets"
        record.enter(Phase.RESETTING)
        if not self._host.providers[record.provider].info.can(Capability.RESET_IN_PLACE):
            try:
                await self._host.start_generation(record)  # a fresh one is the cheapest clean one
            except NotClean as exc:  # the host has noted it
                return f"not clean: {exc}"
            return ResetReport()
        try:
            report = await record.instance.reset()
        except EnvError as exc:
            self._host.count_failure(record)
            self._host.boot_failures.add(record, EnvError(f"not clean after a trajectory, so rebuilt: {exc}"))
            return f"not clean: {exc}"
        await record.rest()
        return report
