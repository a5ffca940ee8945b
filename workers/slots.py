"""A slot is one thread of an env worker with one leased desktop, kept between trajectories.

    no desktop -> clean -> (a trajectory) -> dirty -> reset -> clean
A desktop is reset right after its trajectory, so the next one starts on a clean screen at once.
"""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings

from webapp.fleet.models import DesktopPhase
from workers import identity, reporting
from workers.deskhost.client import DeskHostClient, LeaseKeeper
from workers.desktop import DesktopEnv
from workers.providers.base import DesktopSpec, EnvError, ErrorKind

log = logging.getLogger(__name__)

LEASE_S = 15.0
QUOTA_WAIT_S = 60.0
"""How long a slot waits for a desktop when the host is full."""
QUOTA_PAUSE_S = 0.5


class Slot:
    """The desktop of one thread."""

    def __init__(self) -> None:
        self._client = DeskHostClient(settings.DESKHOST_SOCKET)
        self._env: DesktopEnv | None = None
        self._keeper: LeaseKeeper | None = None
        self._wanted: tuple[str, DesktopSpec] | None = None
        self._is_dirty = False

    def clean(self, provider: str, screen: tuple[int, int]) -> DesktopEnv:
        """A clean desktop of this kind. Raises EnvError."""
        wanted = (provider, DesktopSpec(width=screen[0], height=screen[1]))
        if self._env is not None and (self._wanted != wanted or self._is_lost()):
            self.drop()
        if self._env is None:
            self._take(wanted)
        assert self._env is not None
        if self._is_dirty:
            self._env.reset()
        self._is_dirty = True
        return self._env

    def reset_soon(self) -> None:
        """Clean up after a trajectory; a desktop that cannot be cleaned is given back."""
        if self._env is None or not self._is_dirty:
            return
        try:
            self._env.reset()
            self._is_dirty = False
        except EnvError as error:
            log.warning("desktop given back, its reset failed: %s", error)
            self.drop()

    def drop(self) -> None:
        """Give the desktop back to the desk host. Idempotent."""
        if self._keeper is not None:
            self._keeper.close()
        if self._env is not None:
            reporting.desktop_phase(self._env.lease.desktop.desktop_id, DesktopPhase.READY)
            self._env.close()
        self._client.close()
        self._env = self._keeper = self._wanted = None
        self._is_dirty = False

    def _is_lost(self) -> bool:
        return self._keeper is not None and self._keeper.lost.is_set()

    def _take(self, wanted: tuple[str, DesktopSpec]) -> None:
        holder = f"{identity.current().name}/{threading.current_thread().name}"
        deadline = time.monotonic() + QUOTA_WAIT_S
        while True:
            try:
                lease = self._client.acquire(wanted[0], wanted[1], holder=holder, ttl_s=LEASE_S)
                break
            except EnvError as error:
                if error.kind is not ErrorKind.QUOTA or time.monotonic() > deadline:
                    raise
                time.sleep(QUOTA_PAUSE_S)
        self._keeper = LeaseKeeper(self._client, lease)
        self._env = DesktopEnv(self._client, lease)
        self._wanted = wanted


_local = threading.local()
_all: list[Slot] = []


def _slot() -> Slot:
    if not hasattr(_local, "slot"):
        _local.slot = Slot()
        _all.append(_local.slot)
    return _local.slot


def clean_desktop(provider: str, screen: tuple[int, int]) -> DesktopEnv:
    """This thread's desktop, clean."""
    return _slot().clean(provider, screen)


def reset_soon() -> None:
    """Clean this thread's desktop after its trajectory."""
    _slot().reset_soon()


def drop_desktop() -> None:
    """Give this thread's desktop back: something was wrong with it."""
    _slot().drop()


def release_all() -> None:
    """At shutdown: give every desktop of this process back."""
    for slot in _all:
        slot.drop()
