"""Task templates: a task's setup runs once, and every later desktop wakes up with it done.

    prepare(key) -> ready: the desktop is a clone of the template
                 -> not ready: it is a machine to run the setup on, then keep(): saved, cloned, ready
While one desktop prepares a key, others that ask for it wait. A desktop that is reset, lost or destroyed
before `keep` gives its turn to the next one.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol, cast

from training.contracts.config import Capability
from workers.desktops.contract import (
    DesktopSpec,
    EnvError,
    ErrorKind,
    ProviderDesktop,
    ResetReport,
)
from workers.desktops.host.desktop_record import Managed
from workers.desktops.host.host import DeskHost, Make
from workers.desktops.host.messages import Prepared, ResetResult

WAIT_S = 600.0
"""For another desktop that prepares the same task; a first boot may come before it."""
POLL_S = 0.05


class SnapshotProvider(Protocol):
    """What a provider with Capability.SNAPSHOT offers beside `Provider`."""

    async def task_template(self, spec: DesktopSpec, key: str) -> str:
        """Full name of the template of this setup on desktops of this kind, whether it is there or not."""

    async def has_template(self, spec: DesktopSpec, name: str) -> bool:
        """Whether it is there and fits."""

    def from_template(self, name: str) -> Make:
        """Makes a clone of it."""

    def to_prepare(self) -> Make:
        """Makes a clean desktop that can be kept as a template."""

    async def keep(self, living: ProviderDesktop, name: str) -> None:
        """Save a desktop as this template; it is ended by that."""


@dataclass(frozen=True)
class Turn:
    """Whose turn it is to prepare a template."""

    managed: Managed
    living: ProviderDesktop

    @property
    def stands(self) -> bool:
        return self.managed.living is self.living and self.managed.lease is not None


class TaskTemplates:
    """The templates in the making on one host."""

    def __init__(self, host: DeskHost) -> None:
        self._host = host
        self._turns: dict[str, Turn] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepare(self, desktop_id: str, lease_id: str, key: str) -> Prepared:
        """A desktop with the setup done, or one on which the caller has to do it. Raises EnvError."""
        managed = self._host.leases.held(desktop_id, lease_id)
        provider = self._provider(managed)
        name = await provider.task_template(managed.spec, key)
        deadline = time.monotonic() + WAIT_S
        async with self._locks.setdefault(name, asyncio.Lock()):
            while (turn := self._turns.get(name)) and turn.stands and turn.managed is not managed:
                if time.monotonic() > deadline:
                    message = f"desktop {turn.managed.desktop_id} still prepares this task after {WAIT_S:g} s"
                    raise EnvError(message)
                await asyncio.sleep(POLL_S)
            is_ready = await provider.has_template(managed.spec, name)
            make = provider.from_template(name) if is_ready else provider.to_prepare()
            self._host.pool.note_prepared(managed.kind)
            await self._host.replace(managed, make)
            if not is_ready:
                assert managed.living is not None
                self._turns[name] = Turn(managed, managed.living)
        return Prepared(desktop=managed.info(), is_ready=is_ready)

    async def keep(self, desktop_id: str, lease_id: str) -> ResetResult:
        """Save the prepared desktop, and go on with a clone of it. Raises EnvError."""
        started = time.monotonic()
        managed = self._host.leases.held(desktop_id, lease_id)
        provider = self._provider(managed)
        name = next((n for n, turn in self._turns.items() if turn.managed is managed and turn.stands), None)
        if name is None:
            message = "this desktop is not being prepared; call prepare first"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        living = self._turns[name].living
        try:
            saved = provider.keep(living, name)
            await self._host.replace(managed, provider.from_template(name), saved_by=saved)
        finally:
            self._turns.pop(name, None)
        return ResetResult(
            desktop=managed.info(), report=ResetReport(wall_s=time.monotonic() - started, reason="")
        )

    def _provider(self, managed: Managed) -> SnapshotProvider:
        provider = self._host.providers[managed.provider]
        if not provider.info.can(Capability.SNAPSHOT):
            message = f"desktops of {managed.provider} cannot be saved"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return cast("SnapshotProvider", provider)
