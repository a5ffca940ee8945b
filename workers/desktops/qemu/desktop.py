"""One virtual machine as a desktop: a clone that is woken, greeted, perhaps saved, and ended."""

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from workers.desktops.contract import (
    BootFailed,
    BootPhase,
    Endpoints,
    EnvError,
    ErrorKind,
    ResetReport,
    Usage,
)
from workers.desktops.qemu.boot_phases import LOG_LINES, Machine, Progress
from workers.desktops.qemu.branch_snapshots import BranchSnapshots
from workers.desktops.qemu.command_line import OVERHEAD_MB
from workers.desktops.qemu.machine_identity import LOG, MachineSpec
from workers.desktops.qemu.snapshot_store import SnapshotMeta
from workers.desktops.qemu.template_store import Template
from workers.desktops.qemu.templates_and_clones import INITIALISE_LIMIT_S, MachineFactory
from workers.desktops.qemu.vm_process import tail

CLONE_LIMIT_S = 30.0


@dataclass
class QemuDesktop:
    factory: MachineFactory
    folder: Path
    template: Template
    machine: MachineSpec
    is_writable: bool = False
    """It can be kept as a template."""
    pid: int = 0
    endpoints: Endpoints = field(default_factory=Endpoints)
    started_at: float = 0.0
    _running: Machine | None = None

    async def start(self, name: str, progress: Progress) -> None:
        started = time.monotonic()
        self.factory.store.retain(self.template.key)
        progress.enter(BootPhase.CREATING)
        async with asyncio.timeout(CLONE_LIMIT_S):
            running = self._running = await self._wake(name)
        self.folder, self.started_at = running.vm.folder, started
        self.pid = running.vm.pid
        progress.enter(BootPhase.BOOTING)
        if running.agent:
            async with asyncio.timeout(INITIALISE_LIMIT_S):
                await asyncio.to_thread(self.factory.initialise_clone, running.agent, self.template)
        self.endpoints = self.factory.endpoints(running, self.machine)
        progress.enter(BootPhase.READY)

    async def _wake(self, name: str) -> Machine:
        if self.is_writable:
            return await self.factory.writable_clone(self.template, self.machine, name)
        return await self.factory.clone(self.template, self.machine, self.folder, name)

    async def keep(self, name: str) -> None:
        """Save it as the template of this name; it is ended by that."""
        if not self.is_writable or self._running is None:
            raise EnvError("this machine's memory is no file of its own: it cannot be saved", permanent=True)
        setup_s = time.monotonic() - self.started_at
        await self.factory.save(self._running, self.machine, name, boot_s=setup_s, parent=self.template.key)

    async def take_snapshot(self, branches: BranchSnapshots, label: str) -> SnapshotMeta:
        """Save it as it is now; it goes on."""
        if self.is_writable or self._running is None:
            raise EnvError("a machine that prepares a template has no snapshots", kind=ErrorKind.TASK)
        return await branches.take(self._running, self.machine, self.template, label)

    @property
    def cgroups(self) -> list[str]:
        return self._running.vm.cgroups if self._running else []

    @property
    def memory_limit_mb(self) -> float:
        return self.machine.memory_mb + OVERHEAD_MB

    async def reset(self) -> ResetReport:
        """A machine is not cleaned: the host replaces it by a fresh clone."""
        raise EnvError("a virtual machine is reset by a new clone", permanent=True)

    async def wait_dead(self) -> str:
        assert self._running is not None
        return await self._running.vm.wait_dead()

    async def pause(self) -> None:
        """Stand still: an idle guest costs 1 to 9 % of a processor."""
        assert self._running is not None
        await self._running.vm.execute("stop")

    async def go_on(self) -> None:
        assert self._running is not None
        await self._running.vm.execute("cont")
        if self._running.agent:
            await asyncio.to_thread(self.factory.set_clock, self._running.agent)

    async def is_alive(self, limit_s: float) -> bool:
        """Whether QEMU itself answers, whatever its guest does."""
        running = self._running
        return running is not None and await running.vm.is_alive(limit_s)

    async def destroy(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.vm.end()
        self.factory.store.release(self.template.key)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def usage(self) -> Usage:
        return self._running.vm.usage() if self._running else Usage()

    def private_mb(self) -> float:
        """A clone's memory file is shared with its template; only what it changed is its own."""
        return self._running.vm.private_mb() if self._running else 0.0

    def console_log(self, lines: int) -> str:
        """End of the guest's serial console."""
        return "\n".join(tail(self.folder / LOG, lines))


def clone_failure(desktop: QemuDesktop, progress: Progress, exc: Exception) -> BootFailed:
    reason = str(exc) or "no answer in time"
    log = "\n".join(line for name in ("qemu.log", LOG) for line in tail(desktop.folder / name, LOG_LINES))
    return BootFailed(f"a clone did not come up: {reason}", boot_phase=progress.phase, log=log)
