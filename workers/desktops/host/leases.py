"""Who may use which desktop, and for how long: the time-limited rights that a host gives.

acquire -> renew* -> release, or expired: then the desktop is taken back and rebuilt
"""

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterable

from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.desktop_record import DesktopRecord, HeldLease, Kind
from workers.desktops.host.host import DeskHost
from workers.desktops.host.messages import Lease, Phase
from workers.desktops.host.resets import Resets

log = logging.getLogger("deskhost")

COMING_POLL_S = 0.05
LONGEST_TTL_S = 3600.0


class Leases:
    """The leases of one host."""

    def __init__(self, host: DeskHost, resets: Resets) -> None:
        self._host = host
        self._resets = resets

    async def acquire(self, provider: str, spec: DesktopSpec, holder: str, ttl_s: float) -> Lease:
        """Lease a clean desktop of this kind, making one if none is free. Raises EnvError (quota)."""
        if not 0 < ttl_s <= LONGEST_TTL_S:
            message = f"ttl_s must be above 0 and at most {LONGEST_TTL_S:g} seconds"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        if self._host.is_draining:
            raise EnvError("this host is being drained: nothing new is leased", kind=ErrorKind.QUOTA)
        kind = (provider, spec)
        held = HeldLease(secrets.token_hex(8), holder, ttl_s, time.monotonic() + ttl_s)
        with self._host.pool.waiting(kind) as place:
            record = await self._next_free(kind, place)
            if record is not None:
                held.expires_at = time.monotonic() + ttl_s
                record.give_to(held)
        if record is None:
            await self._make_room()
            held.expires_at = math.inf  # starts to count when the holder gets it
            record = await self._host.make(provider, spec, held)
            held.expires_at = time.monotonic() + ttl_s
            record.is_dirty = True
        self._note(kind)
        try:
            await record.go_on()
        except EnvError as exc:
            self.take_back(record, because=f"it did not go on after a pause: {exc}")
            raise
        return record.leased()

    async def _next_free(self, kind: Kind, place: Callable[[], int]) -> DesktopRecord | None:
        """A free desktop, waited for while more are coming than requests wait before us; None: make one."""
        while True:
            if (record := self._host.free_one(kind)) is not None:
                return record
            if sum(m.is_coming for m in self._host.of_kind(kind)) <= place():
                return None
            # Changes come while a record's lock is still held, so it is looked at again soon after, too.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COMING_POLL_S):
                    await self._host.changed.wait()

    async def _make_room(self) -> None:
        """On a full host, give up a free desktop of another kind or a dead one."""
        host = self._host
        if len(host.desktops) < host.max_desktops:
            return
        idle = (Phase.READY, Phase.DEAD)
        for record in list(host.desktops.values()):
            is_kept = record.lease is not None or record.quarantine or record.lock.locked()
            if record.phase in idle and not is_kept:
                await host.destroy(record.desktop_id)
                return

    def renew(self, lease_id: str, ttl_s: float | None = None) -> Lease:
        """Extend a lease from now. Raises EnvError (quota) when it has expired."""
        record = self._host.by_lease(lease_id)
        held = record.lease
        assert held is not None
        held.ttl_s = ttl_s or held.ttl_s
        held.expires_at = time.monotonic() + held.ttl_s
        return record.leased()

    def release(self, lease_id: str) -> None:
        """Give a desktop back; it is cleaned in the background. An expired lease is fine."""
        with contextlib.suppress(EnvError):
            self.take_back(self._host.by_lease(lease_id))

    def take_back(self, record: DesktopRecord, *, because: str = "") -> None:
        """Clean before the next holder can have it: it stays out of READY until then.

        `because`: taken from its holder, who may come back with connections open, so it is rebuilt.
        """
        record.lease = None
        record.rebuild_reason = because
        self._note(record.kind)
        self._host.note_change()
        self._host.spawn(self._resets.clean_or_drop(record))

    def expire(self, leased: Iterable[DesktopRecord]) -> None:
        """Take back what was not renewed in time. Waits for nothing: leases end when they end."""
        now = time.monotonic()
        for record in leased:
            if record.lease is not None and record.lease.expires_at < now:
                holder = record.lease.holder
                log.warning("lease of %s by %s expired", record.desktop_id, holder)
                self.take_back(record, because=f"its holder {holder} fell silent")

    def _note(self, kind: Kind) -> None:
        leased = sum(m.lease is not None for m in self._host.of_kind(kind))
        self._host.pool.note_leases(kind, leased)
