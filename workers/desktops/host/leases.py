"""Who may use which desktop, and for how long: the time-limited rights that a host gives.

acquire -> renew* -> release, or expired: then the desktop is taken back and rebuilt
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.desktop_record import HeldLease, Kind, Managed
from workers.desktops.host.messages import Lease, Phase

if TYPE_CHECKING:
    from workers.desktops.host.host import DeskHost

log = logging.getLogger("deskhost")

COMING_POLL_S = 0.004
LONGEST_TTL_S = 3600.0


class Leasing:
    """The leases of one host."""

    def __init__(self, host: DeskHost) -> None:
        self._host = host

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
            managed = await self._next_free(kind, place)
            if managed is not None:
                held.expires_at = time.monotonic() + ttl_s
                managed.give_to(held)
        if managed is None:
            await self._make_room()
            held.expires_at = math.inf  # starts to count when the holder gets it
            managed = await self._host.make(provider, spec, held)
            held.expires_at = time.monotonic() + ttl_s
            managed.is_dirty = True
        self._note(kind)
        try:
            await managed.go_on()
        except EnvError as exc:
            self.take_back(managed, because=f"it did not go on after a pause: {exc}")
            raise
        return managed.leased()

    async def _next_free(self, kind: Kind, place: Callable[[], int]) -> Managed | None:
        """A free desktop, waited for while one is coming that nobody before us needs; None: make one."""
        while True:
            if (managed := self._host.free_one(kind)) is not None:
                return managed
            if sum(m.is_coming for m in self._host.of_kind(kind)) <= place():
                return None
            await asyncio.sleep(COMING_POLL_S)

    async def _make_room(self) -> None:
        """On a full host, give up a free desktop of another kind or a dead one."""
        host = self._host
        if len(host.desktops) < host.max_desktops:
            return
        idle = (Phase.READY, Phase.DEAD)
        for managed in list(host.desktops.values()):
            is_kept = managed.lease is not None or managed.quarantine or managed.lock.locked()
            if managed.phase in idle and not is_kept:
                await host.destroy(managed.desktop_id)
                return

    def renew(self, lease_id: str, ttl_s: float | None = None) -> Lease:
        """Extend a lease from now. Raises EnvError (quota) when it has expired."""
        managed = self._by_lease(lease_id)
        held = managed.lease
        assert held is not None
        held.ttl_s = ttl_s or held.ttl_s
        held.expires_at = time.monotonic() + held.ttl_s
        return managed.leased()

    def release(self, lease_id: str) -> None:
        """Give a desktop back; it is cleaned in the background. An expired lease is fine."""
        with contextlib.suppress(EnvError):
            self.take_back(self._by_lease(lease_id))

    def take_back(self, managed: Managed, *, because: str = "") -> None:
        """Clean before the next holder can have it: it stays out of READY until then.

        Taken from a holder, it is rebuilt: whoever was cut off may come back with its connections open.
        """
        managed.lease = None
        managed.taken_because = because
        self._note(managed.kind)
        self._host.note_change()
        self._host.spawn(self._host.clean_or_drop(managed))

    def expire(self, leased: Iterable[Managed]) -> None:
        """Take back what was not renewed in time. Waits for nothing: leases end when they end."""
        now = time.monotonic()
        for managed in leased:
            if managed.lease is not None and managed.lease.expires_at < now:
                holder = managed.lease.holder
                log.warning("lease of %s by %s expired", managed.desktop_id, holder)
                self.take_back(managed, because=f"its holder {holder} fell silent")

    def held(self, desktop_id: str, lease_id: str) -> Managed:
        """The desktop of a lease. Raises EnvError when the lease is over or for another desktop."""
        managed = self._by_lease(lease_id)
        if managed.desktop_id != desktop_id:
            message = f"lease {lease_id} is for desktop {managed.desktop_id}, not {desktop_id}"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return managed

    def _by_lease(self, lease_id: str) -> Managed:
        for managed in self._host.desktops.values():
            if managed.lease is not None and managed.lease.lease_id == lease_id:
                return managed
        raise EnvError("the lease has expired or was released; acquire a new one", kind=ErrorKind.QUOTA)

    def _note(self, kind: Kind) -> None:
        leased = sum(m.lease is not None for m in self._host.of_kind(kind))
        self._host.pool.note_leases(kind, leased)
