"""Task templates: a task's setup runs once, and every later desktop wakes up with it done.

    prepare(key) -> ready: the desktop is a clone of the template
                 -> not ready: it is a machine to run the setup on, then keep(): saved, cloned, ready
While one desktop prepares a key, others that ask for it wait. A desktop that is reset, lost or destroyed
before `keep` lets the next one prepare it.
"""

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
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.host import DeskHost, MakeDesktop
from workers.desktops.host.messages import Prepared, ResetResult

WAIT_S = 600.0
"""For another desktop that prepares the same task; a first boot may come before it."""
POLL_S = 0.05


class TemplateProvider(Protocol):
    """What a provider with Capability.SNAPSHOT offers beside `Provider`."""

    async def task_template(self, spec: DesktopSpec, key: str) -> str:
        """Full name of the template of this setup on desktops of this kind, whether it is there or not."""

    async def has_template(self, spec: DesktopSpec, name: str) -> bool:
        """Whether it is there and fits."""

    def from_template(self, name: str) -> MakeDesktop:
        """Makes a clone of it."""

    def to_prepare(self) -> MakeDesktop:
        """Makes a clean desktop that can be kept as a template."""

    async def keep(self, instance: ProviderDesktop, name: str) -> None:
        """Save a desktop as this template; it is ended by that."""


@dataclass(frozen=True)
class Preparation:
    """A desktop on which a template is being prepared."""

    record: DesktopRecord
    instance: ProviderDesktop

    @property
    def is_current(self) -> bool:
        return self.record.instance is self.instance and self.record.lease is not None

    def is_of_another_than(self, record: DesktopRecord) -> bool:
        """Whether another desktop is at it now."""
        return self.is_current and self.record is not record


class TaskTemplates:
    """The templates in the making on one host."""

    def __init__(self, host: DeskHost) -> None:
        self._host = host
        self._preparations: dict[str, Preparation] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepare(self, desktop_id: str, lease_id: str, key: str) -> Prepared:
        """A desktop with the setup done, or one on which the caller has to do it. Raises EnvError."""
        record = self._host.held(desktop_id, lease_id)
        provider = self._provider(record)
        name = await provider.task_template(record.spec, key)
        deadline = time.monotonic() + WAIT_S
        async with self._locks.setdefault(name, asyncio.Lock()):
            while (making := self._preparations.get(name)) and making.is_of_another_than(record):
                if time.monotonic() > deadline:
                    other = making.record.desktop_id
                    raise EnvError(f"desktop {other} still prepares this task after {WAIT_S:g} s")
                await asyncio.sleep(POLL_S)
            is_ready = await provider.has_template(record.spec, name)
            make = provider.from_template(name) if is_ready else provider.to_prepare()
            self._host.pool.note_prepared(record.kind)
            await self._host.replace(record, make)
            if not is_ready:
                assert record.instance is not None
                self._preparations[name] = Preparation(record, record.instance)
        return Prepared(desktop=record.info(), is_ready=is_ready)

    async def keep(self, desktop_id: str, lease_id: str) -> ResetResult:
        """Save the prepared desktop, and go on with a clone of it. Raises EnvError."""
        started = time.monotonic()
        record = self._host.held(desktop_id, lease_id)
        provider = self._provider(record)
        made = {name: of for name, of in self._preparations.items() if of.record is record and of.is_current}
        if not made:
            message = "this desktop is not being prepared; call prepare first"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        name, preparation = made.popitem()
        try:
            saved = provider.keep(preparation.instance, name)
            await self._host.replace(record, provider.from_template(name), saved_by=saved)
        finally:
            self._preparations.pop(name, None)
        return ResetResult(
            desktop=record.info(), report=ResetReport(wall_s=time.monotonic() - started, reason="")
        )

    def _provider(self, record: DesktopRecord) -> TemplateProvider:
        provider = self._host.providers[record.provider]
        if not provider.info.can(Capability.SNAPSHOT):
            message = f"desktops of {record.provider} cannot be saved"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return cast("TemplateProvider", provider)
