"""Provider `qemu`: virtual machines, cloned from a paused template instead of booted.

The first desktop of a kind boots once, into a template (20 to 50 s without KVM); every other one, and
every reset, is a clone of it with a fresh disk overlay and private memory: 0.1 to 0.3 s to a screen, and
nothing of the trajectory before can be in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workers.providers.base import (
    BootFailed,
    BootPhase,
    Capability,
    DesktopSpec,
    Endpoints,
    EnvError,
    ErrorKind,
    Health,
    ProviderDesktop,
    ResetReport,
    Usage,
)
from workers.qemu import accel
from workers.qemu.boot import LOG_LINES, Machine, Progress
from workers.qemu.branching import Brancher
from workers.qemu.lab import Lab
from workers.qemu.machine import LOG, OVERHEAD_MB, MachineSpec, qemu_version
from workers.qemu.process import tail
from workers.qemu.snapshots import SnapshotMeta, SnapshotStore
from workers.qemu.templates import DEFAULT_LIMIT_MB, Template

CLONE_LIMIT_S = 30.0
WELCOME_LIMIT_S = 60.0
"""A clone answers within 1 to 2 s; eight at once on a busy machine take ten times as long."""
CLONE_TRIES = 2
Make = Callable[[str, DesktopSpec, Path], Awaitable[ProviderDesktop]]
PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}


class QemuProvider:
    """Starts virtual machines on this machine."""

    name = "qemu"
    lab_class = Lab
    capabilities = frozenset(
        {Capability.EXEC, Capability.FILES, Capability.MOUSE, Capability.VNC, Capability.SNAPSHOT}
    )

    def __init__(
        self,
        images: Path,
        templates: Path,
        *,
        limit_mb: int = DEFAULT_LIMIT_MB,
        snapshots: SnapshotStore | None = None,
    ) -> None:
        self._folders = (images, templates, limit_mb)
        self._lab: Lab | None = None
        self.snapshots = snapshots or SnapshotStore(templates.parent / "snapshots")
        self._brancher: Brancher | None = None
        self._progress: dict[str, Progress] = {}

    @property
    def lab(self) -> Lab:
        """Made on first use: a host without machines needs none of its folders."""
        if self._lab is None:
            images, templates, limit_mb = self._folders
            self._lab = self.lab_class(images, templates, limit_mb=limit_mb)
        return self._lab

    @property
    def brancher(self) -> Brancher:
        """Made on first use, as the lab."""
        if self._brancher is None:
            self._brancher = Brancher(self.lab, self.snapshots)
        return self._brancher

    def probe(self) -> Health:
        """What works here and what to do for the rest."""
        health = Health(provider=self.name, usable=True)
        for program, package in PACKAGES.items():
            if shutil.which(program) is None:
                health.usable = False
                health.reasons.append(f"{program} is not installed")
                health.remedies.append(f"apt-get install {package}")
        images = self._folders[0]
        names = sorted(path.parent.name for path in images.glob("*/image.json"))
        if not names:
            health.usable = False
            health.reasons.append(f"there is no guest image in {images}")
            health.remedies.append("make guest-image")
        if health.usable:
            verdict = self._folders[1] / "accelerator.json"
            health.mode = f"QEMU {qemu_version()}, {_verdict(verdict)}, images: {', '.join(names)}"
        return health

    def boot_phase(self, desktop_id: str) -> str:
        progress = self._progress.get(desktop_id)
        return str(progress) if progress else ""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
        """A clone of the template of this kind, which is made first when there is none."""
        with self._progress_of(desktop_id) as progress:
            machine = await self.lab.machine_spec(spec)
            template = await self.lab.template(machine, progress)
            return await self._clone(desktop_id, template, machine, folder, progress)

    @contextlib.contextmanager
    def _progress_of(self, desktop_id: str) -> Iterator[Progress]:
        progress = self._progress[desktop_id] = Progress()
        try:
            yield progress
        finally:
            self._progress.pop(desktop_id, None)

    # -- task templates ---------------------------------------------------------------------

    async def task_template(self, spec: DesktopSpec, key: str) -> str:
        """Full name of the template with this setup done, whether it is there or not."""
        return self.lab.task_key(await self.lab.machine_spec(spec), key)

    async def has_template(self, spec: DesktopSpec, name: str) -> bool:
        return self.lab.find(name, await self.lab.machine_spec(spec)) is not None

    def from_template(self, name: str) -> Make:
        """Makes a clone of the template of this name."""

        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.lab.machine_spec(spec)
                template = self.lab.find(name, machine)
                if template is None:
                    raise EnvError(f"the task's template {name} was removed meanwhile")
                return await self._clone(desktop_id, template, machine, folder, progress)

        return make

    def to_prepare(self) -> Make:
        """Makes a clean machine whose memory is a file of its own, so that it can be saved."""

        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.lab.machine_spec(spec)
                template = await self.lab.template(machine, progress)
                return await self._clone(desktop_id, template, machine, folder, progress, writable=True)

        return make

    async def keep(self, living: ProviderDesktop, name: str) -> None:
        """Save a machine made by `to_prepare` as this template; it is ended by that."""
        assert isinstance(living, QemuDesktop)
        await living.keep(name)

    # -- snapshots --------------------------------------------------------------------------

    async def take_snapshot(self, living: ProviderDesktop, label: str) -> SnapshotMeta:
        """Save a desktop as it is now; it goes on."""
        assert isinstance(living, QemuDesktop)
        return await living.take_snapshot(self.brancher, label)

    async def check_snapshot(self, spec: DesktopSpec, name: str) -> None:
        """Raises SnapshotGone when a desktop of this kind cannot wake up from it."""
        machine = await self.lab.machine_spec(spec)
        await asyncio.to_thread(self.brancher.check, name, machine)

    def from_snapshot(self, name: str) -> Make:
        """Makes a desktop that goes on where the snapshot was taken."""

        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.lab.machine_spec(spec)
                template = await self.brancher.template(name, machine)
                return await self._clone(desktop_id, template, machine, folder, progress)

        return make

    def drop_snapshot(self, name: str) -> bool:
        """Remove one and what was made of it; False when there was none."""
        return self.brancher.drop(name)

    def sweep_snapshots(self) -> None:
        """Remove what was made of dropped ones, as far as no desktop lives on it any more."""
        if self._brancher is not None:
            self._brancher.sweep()

    async def _clone(
        self,
        name: str,
        template: Template,
        machine: MachineSpec,
        folder: Path,
        progress: Progress,
        *,
        writable: bool = False,
    ) -> QemuDesktop:
        """Clone and welcome, tried again once: a clone costs little and each starts from scratch."""
        for attempt in range(1, CLONE_TRIES + 1):
            progress.attempt = attempt
            desktop = QemuDesktop(self.lab, folder, template, machine, writable)
            try:
                await desktop.start(name, progress)
                return desktop
            except (EnvError, TimeoutError) as exc:
                failure = _failure(desktop, progress, exc)
                await desktop.destroy()
                if getattr(exc, "kind", None) is ErrorKind.QUOTA:
                    raise  # no room: there may be some later, but not at once
                if attempt == CLONE_TRIES or getattr(exc, "permanent", False):
                    raise failure from exc
            except BaseException:
                await desktop.destroy()
                raise
        raise AssertionError("unreachable")


@dataclass
class QemuDesktop:
    """One clone."""

    lab: Lab
    folder: Path
    template: Template
    machine: MachineSpec
    is_writable: bool = False
    """It can be kept as a template."""
    pid: int = 0
    endpoints: Endpoints = field(default_factory=Endpoints)
    screen_s: float = 0.0
    """From the start of the clone to its screen."""
    agent_s: float = 0.0
    """From the start of the clone to its agent's answer."""
    started_at: float = 0.0
    _running: Machine | None = None

    async def start(self, name: str, progress: Progress) -> None:
        started = time.monotonic()
        self.lab.store.hold(self.template.key)
        progress.enter(BootPhase.CREATING)
        async with asyncio.timeout(CLONE_LIMIT_S):
            running = self._running = await self._wake(name)
        self.folder, self.started_at = running.vm.folder, started
        self.screen_s = time.monotonic() - started
        self.pid = running.vm.pid
        progress.enter(BootPhase.BOOTING)
        if running.agent:
            async with asyncio.timeout(WELCOME_LIMIT_S):
                await asyncio.to_thread(self.lab.welcome, running.agent)
        self.agent_s = time.monotonic() - started
        self.endpoints = self.lab.endpoints(running, self.machine)
        progress.enter(BootPhase.READY)

    async def _wake(self, name: str) -> Machine:
        if self.is_writable:
            return await self.lab.writable_clone(self.template, self.machine, name)
        return await self.lab.clone(self.template, self.machine, self.folder, name)

    async def keep(self, name: str) -> None:
        """Save it as the template of this name; it is ended by that."""
        if not self.is_writable or self._running is None:
            raise EnvError("this machine's memory is no file of its own: it cannot be saved", permanent=True)
        setup_s = time.monotonic() - self.started_at
        await self.lab.save(self._running, self.machine, name, boot_s=setup_s, parent=self.template.key)

    async def take_snapshot(self, brancher: Brancher, label: str) -> SnapshotMeta:
        """Save it as it is now; it goes on."""
        if self.is_writable or self._running is None:
            raise EnvError("a machine that prepares a template has no snapshots", kind=ErrorKind.TASK)
        return await brancher.take(self._running, self.machine, self.template, label)

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
            await asyncio.to_thread(self.lab.tell_time, self._running.agent)

    async def is_alive(self, limit_s: float) -> bool:
        """Whether QEMU itself answers, whatever its guest does."""
        running = self._running
        return running is not None and await running.vm.is_alive(limit_s)

    async def destroy(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.vm.end()
        self.lab.store.let_go(self.template.key)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def usage(self) -> Usage:
        return self._running.vm.usage() if self._running else Usage()

    def private_mb(self) -> float:
        """A clone's memory file is shared with its template; only what it changed is its own."""
        return self._running.vm.private_mb() if self._running else 0.0

    def console_log(self, lines: int) -> str:
        """End of the guest's serial console."""
        return "\n".join(tail(self.folder / LOG, lines))


def _failure(desktop: QemuDesktop, progress: Progress, exc: Exception) -> BootFailed:
    reason = str(exc) or "no answer in time"
    log = "\n".join(line for name in ("qemu.log", LOG) for line in tail(desktop.folder / name, LOG_LINES))
    return BootFailed(f"a clone did not come up: {reason}", boot_phase=progress.phase, log=log)


def _verdict(cache: Path) -> str:
    """The accelerator, when it was tried already."""
    if reason := accel.plain_refusal():
        return f"tcg ({reason})"
    with contextlib.suppress(OSError, ValueError, KeyError):
        kept = json.loads(cache.read_text())
        return f"{kept['accelerator']} ({kept['reason']})"
    return "accelerator not tried yet"
