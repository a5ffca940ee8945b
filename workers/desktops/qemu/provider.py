"""Provider `qemu`: virtual machines, cloned from a paused template instead of booted.

The first desktop of a kind boots once, into a template (20 to 50 s without KVM); every other one, and
every reset, is a clone of it with a fresh disk overlay and private memory: 0.1 to 0.3 s to a screen, and
nothing of the trajectory before can be in it.
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from training.contracts.config.providers.qemu import QEMU
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind, Health, NotClean, ProviderDesktop
from workers.desktops.host_storage import HostStorage
from workers.desktops.qemu import accelerator
from workers.desktops.qemu.boot_phases import Progress
from workers.desktops.qemu.branch_snapshots import BranchSnapshots
from workers.desktops.qemu.clone_check import WrongPicture
from workers.desktops.qemu.command_line import qemu_version
from workers.desktops.qemu.desktop import QemuDesktop, clone_failure
from workers.desktops.qemu.machine_identity import MachineSpec
from workers.desktops.qemu.snapshot_store import SnapshotMeta, SnapshotStore
from workers.desktops.qemu.template_store import Template
from workers.desktops.qemu.templates_and_clones import MachineFactory

CLONE_TRIES = 2
Make = Callable[[str, DesktopSpec, Path], Awaitable[ProviderDesktop]]
PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}


class QemuProvider:
    """Starts virtual machines on this machine."""

    info = QEMU
    factory_class = MachineFactory

    def __init__(self, storage: HostStorage) -> None:
        self._storage = storage
        self._factory: MachineFactory | None = None
        self.snapshots = SnapshotStore(storage.snapshots_of(self.info.name), storage.snapshot_limits)
        self._branches: BranchSnapshots | None = None
        self._progress: dict[str, Progress] = {}

    @property
    def factory(self) -> MachineFactory:
        """Made on first use: a host without machines needs none of its folders."""
        if self._factory is None:
            self._factory = self.factory_class(self._storage.images, self._storage.templates)
        return self._factory

    @property
    def branches(self) -> BranchSnapshots:
        """Made on first use, as the factory."""
        if self._branches is None:
            self._branches = BranchSnapshots(self.factory, self.snapshots)
        return self._branches

    def probe(self) -> Health:
        """What works here and what to do for the rest."""
        health = Health(provider=self.info.name, usable=True)
        for program, package in PACKAGES.items():
            if shutil.which(program) is None:
                health.usable = False
                health.reasons.append(f"{program} is not installed")
                health.remedies.append(f"apt-get install {package}")
        images = self._storage.images
        names = sorted(path.parent.name for path in images.glob("*/image.json"))
        if not names:
            health.usable = False
            health.reasons.append(f"there is no guest image in {images}")
            health.remedies.append("make guest-image")
        if health.usable:
            verdict = self._storage.templates / "accelerator.json"
            health.mode = f"QEMU {qemu_version()}, {_verdict(verdict)}, images: {', '.join(names)}"
        return health

    def boot_phase(self, desktop_id: str) -> str:
        progress = self._progress.get(desktop_id)
        return str(progress) if progress else ""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
        """A clone of the template of this kind, which is made first when there is none."""
        with self._progress_of(desktop_id) as progress:
            machine = await self.factory.machine_spec(spec)
            template = await self.factory.template(machine, progress)
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
        return self.factory.task_key(await self.factory.machine_spec(spec), key)

    async def has_template(self, spec: DesktopSpec, name: str) -> bool:
        return self.factory.find(name, await self.factory.machine_spec(spec)) is not None

    def from_template(self, name: str) -> Make:
        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.factory.machine_spec(spec)
                template = self.factory.find(name, machine)
                if template is None:
                    raise EnvError(f"the task's template {name} was removed meanwhile")
                return await self._clone(desktop_id, template, machine, folder, progress)

        return make

    def to_prepare(self) -> Make:
        """Makes a clean machine whose memory is a file of its own, so that it can be saved."""

        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.factory.machine_spec(spec)
                template = await self.factory.template(machine, progress)
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
        return await living.take_snapshot(self.branches, label)

    async def check_snapshot(self, spec: DesktopSpec, name: str) -> None:
        """Raises SnapshotGone when a desktop of this kind cannot wake up from it."""
        machine = await self.factory.machine_spec(spec)
        await asyncio.to_thread(self.branches.check, name, machine)

    def from_snapshot(self, name: str) -> Make:
        """Makes a desktop that goes on where the snapshot was taken."""

        async def make(desktop_id: str, spec: DesktopSpec, folder: Path) -> QemuDesktop:
            with self._progress_of(desktop_id) as progress:
                machine = await self.factory.machine_spec(spec)
                template = await self.branches.template(name, machine)
                return await self._clone(desktop_id, template, machine, folder, progress)

        return make

    def drop_snapshot(self, name: str) -> bool:
        """Remove one and what was made of it; False when there was none."""
        return self.branches.drop(name)

    def sweep_snapshots(self) -> None:
        """Remove what was made of dropped ones, as far as no desktop lives on it any more."""
        if self._branches is not None:
            self._branches.sweep()

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
        """Clone and initialise, tried again once: a clone costs little and each starts from scratch."""
        for attempt in range(1, CLONE_TRIES + 1):
            progress.attempt = attempt
            desktop = QemuDesktop(self.factory, folder, template, machine, writable)
            try:
                await desktop.start(name, progress)
                return desktop
            except NotClean as exc:
                await desktop.destroy()
                if isinstance(exc, WrongPicture):
                    self.factory.store.remove(template.key)  # the next one makes it anew
                raise  # an incident, which the host shows, and no bad luck
            except (EnvError, TimeoutError) as exc:
                failure = clone_failure(desktop, progress, exc)
                await desktop.destroy()
                if getattr(exc, "kind", None) is ErrorKind.QUOTA:
                    raise  # no room: there may be some later, but not at once
                if attempt == CLONE_TRIES or getattr(exc, "permanent", False):
                    raise failure from exc
            except BaseException:
                await desktop.destroy()
                raise
        raise AssertionError("unreachable")


def _verdict(cache: Path) -> str:
    """The accelerator, when it was tried already."""
    if reason := accelerator.kvm_problem():
        return f"tcg ({reason})"
    with contextlib.suppress(OSError, ValueError, KeyError):
        kept = json.loads(cache.read_text())
        return f"{kept['accelerator']} ({kept['reason']})"
    return "accelerator not tried yet"
