"""Makes templates and clones. One per desk host.

    base image --boot, snapshot--> template --clone--> desktop
                                   template --writable clone, a task's setup, snapshot--> task template
A template is made once however many ask for it at the same time.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from pathlib import Path

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, Endpoints, EnvError
from workers.desktops.qemu import accelerator as accel
from workers.desktops.qemu import boot_phases
from workers.desktops.qemu.base_images import GuestImage, ImageStore
from workers.desktops.qemu.boot_phases import Machine, Progress
from workers.desktops.qemu.clone_check import require_fresh_agent, require_same_picture, running_programs
from workers.desktops.qemu.command_line import argv, qemu_version
from workers.desktops.qemu.machine_identity import CONSOLE, DISK, RAM, VNC, MachineSpec
from workers.desktops.qemu.template_store import (
    DEFAULT_LIMIT_MB,
    SCREEN,
    STATE,
    Template,
    TemplateMeta,
    TemplateRefused,
    TemplateStore,
    template_key,
)
from workers.desktops.qemu.vm_process import VmProcess

DEFAULT_IMAGE = "debian-desk"
OVERLAY_MB = 256
"""Free disk that a clone must find."""
TOOL_LIMIT_S = 120.0
SYNC_LIMIT_S = 60.0
INITIALISE_LIMIT_S = 60.0
"""A clone answers within 1 to 2 s; eight at once on a busy machine take ten times as long."""
ENTROPY_BYTES = 64

log = logging.getLogger("deskhost")


class MachineFactory:
    """Images, templates and the accelerator of one machine."""

    def __init__(self, images: Path, templates: Path, *, limit_mb: int = DEFAULT_LIMIT_MB) -> None:
        self.images = ImageStore(images)
        self.store = TemplateStore(templates, limit_mb)
        self.failures = templates / "failures"
        self._making: dict[str, asyncio.Lock] = {}
        self._probing = asyncio.Lock()

    async def machine_spec(self, spec: DesktopSpec) -> MachineSpec:
        """The machine that a desktop of this kind needs. Raises ImageError."""
        image = await asyncio.to_thread(self.images.load, spec.image or DEFAULT_IMAGE)
        async with self._probing:
            accelerator, _ = await asyncio.to_thread(
                accel.accelerator, self.probe_kernel(image), self.store.folder / "accelerator.json"
            )
        return MachineSpec(
            image=image,
            width=spec.width,
            height=spec.height,
            memory_mb=max(spec.memory_mb, image.manifest.machine.memory_mb),
            vcpus=spec.vcpus,
            accelerator=accelerator,
        )

    # -- templates --------------------------------------------------------------------------

    def task_key(self, machine: MachineSpec, setup: str) -> str:
        """Name of the template with this setup done on a machine of this kind."""
        return template_key({"base": self.key(machine), "setup": setup})

    def key(self, machine: MachineSpec) -> str:
        """Name of the template of freshly booted machines of this kind."""
        line, sha256 = argv(machine, shared=True), machine.image.manifest.sha256
        return template_key({"argv": line, "sha256": sha256, "qemu": qemu_version()})

    async def template(self, machine: MachineSpec, progress: Progress) -> Template:
        """The template of freshly booted machines of this kind, made when it is not there."""
        key = self.key(machine)
        async with self._making.setdefault(key, asyncio.Lock()):
            found = self.find(key, machine)
            return found or await self._make(key, machine, progress)

    def find(self, key: str, machine: MachineSpec) -> Template | None:
        """A template that fits, None when there is none or it is damaged: then it is made again."""
        try:
            return self.store.find(key, argv(machine, shared=True), qemu_version())
        except TemplateRefused as exc:
            log.warning("%s; it is made again", exc)
            self.store.remove(key)
            return None

    async def _make(self, key: str, machine: MachineSpec, progress: Progress) -> Template:
        folder = await asyncio.to_thread(self.store.new_folder, machine.memory_mb)
        progress.what = "template"
        started = time.monotonic()

        async def start() -> Machine:
            boot_phases.empty_folder(folder)
            await overlay(machine.image.disk, folder / DISK)
            (folder / RAM).touch()
            os.truncate(folder / RAM, machine.memory_mb << 20)  # takes no space yet
            await asyncio.to_thread(self.add_image_files, machine.image, folder)
            vm = await VmProcess.start(folder, argv(machine, shared=True), folder.name[1:], machine.memory_mb)
            return await self._machine(vm, machine.image)

        try:

            async def wait_until_ready(running: Machine, progress: Progress) -> None:
                await self.wait_until_ready(running, machine, progress)

            running = await boot_phases.boot(start, wait_until_ready, progress, self.failures)
            boot_s = time.monotonic() - started
            return await self.save(running, machine, key, boot_s=boot_s)
        finally:
            progress.what = ""
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def save(
        self, running: Machine, machine: MachineSpec, key: str, *, boot_s: float, parent: str = ""
    ) -> Template:
        """Snapshot a machine whose memory is written through; it is ended by that. Publishes its folder."""
        vm, programs = running.vm, []
        try:
            if running.agent:
                await asyncio.to_thread(self.flush, running.agent)
                programs = await asyncio.to_thread(self.running_programs, running.agent)
            await vm.execute("stop")
            await vm.screenshot(vm.folder / SCREEN)
            await vm.save(vm.folder / STATE)
        finally:
            await vm.end()
        picture = await asyncio.to_thread((vm.folder / SCREEN).read_bytes)
        meta = TemplateMeta(
            key=key,
            parent=parent,
            argv=argv(machine, shared=True),
            qemu_version=qemu_version(),
            image=machine.image.manifest.name,
            image_sha256=machine.image.manifest.sha256,
            memory_mb=machine.memory_mb,
            accelerator=machine.accelerator,
            sizes={},
            screen_digest=hashlib.sha1(picture, usedforsecurity=False).hexdigest(),
            programs=programs,
            boot_s=round(boot_s, 2),
            created_at=time.time(),
        )
        return await asyncio.to_thread(self.store.publish, vm.folder, meta)

    # -- clones -----------------------------------------------------------------------------

    async def clone(self, template: Template, machine: MachineSpec, folder: Path, name: str) -> Machine:
        """A machine that goes on where the template was paused, in `folder` (made here)."""
        await asyncio.to_thread(self.store.guard_disk, OVERLAY_MB, folder.parent)
        folder.mkdir(parents=True, mode=0o700)
        os.symlink(template.folder / RAM, folder / RAM)
        return await self._wake(template, machine, folder, name, shared=False)

    async def writable_clone(self, template: Template, machine: MachineSpec, name: str) -> Machine:
        """A clone with memory of its own on disk, from which another template can be saved."""
        folder = await asyncio.to_thread(self.store.new_folder, machine.memory_mb)
        try:
            await tool(
                "cp", "--sparse=always", "--reflink=auto", str(template.folder / RAM), str(folder / RAM)
            )
            (folder / RAM).chmod(0o600)
            return await self._wake(template, machine, folder, name, shared=True)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise

    async def _wake(
        self, template: Template, machine: MachineSpec, folder: Path, name: str, *, shared: bool
    ) -> Machine:
        line = argv(machine, shared=shared, incoming=True)
        await overlay(template.folder / DISK, folder / DISK)
        await asyncio.to_thread(self.add_image_files, machine.image, folder)
        vm = await VmProcess.start(folder, line, name, machine.memory_mb)
        try:
            await vm.restore(template.folder / STATE)
            await require_same_picture(vm, template)
            await vm.execute("cont")
            return await self._machine(vm, machine.image)
        except BaseException:
            await vm.end()
            raise

    # -- what depends on the guest: a subclass serves another kind --------------------------

    def probe_kernel(self, image: GuestImage) -> Path | None:
        """The kernel with which acceleration is tried."""
        return image.kernel

    def add_image_files(self, image: GuestImage, folder: Path) -> None:
        """Put into a machine's folder what its command line names besides disk and memory."""

    async def wait_until_ready(self, running: Machine, machine: MachineSpec, progress: Progress) -> None:
        """Wait through the phases of a start. Raises TimeoutError, EnvError."""
        await boot_phases.wait_until_ready(running, (machine.width, machine.height), progress)

    def flush(self, address: str) -> None:
        """Bring what programs wrote onto the disk."""
        _flush(address)

    def running_programs(self, address: str) -> list[str]:
        return running_programs(address)

    def initialise_clone(self, address: str, template: Template) -> None:
        """Tell a fresh clone what it must not share with the template. Raises NotClean."""
        initialise_clone(address)
        require_fresh_agent(address, template)

    def set_clock(self, address: str) -> None:
        """Set the clock of a machine that stood still."""
        set_clock(address)

    def endpoints(self, running: Machine, machine: MachineSpec) -> Endpoints:
        return Endpoints(
            console="qmp",
            qmp=str(running.vm.folder / CONSOLE),
            agent=running.agent,
            vnc=str(running.vm.folder / VNC),
            cpu_account=running.vm.cpu_account,
            display_wait_s=boot_phases.display_wait_s(machine.accelerator),
            home=machine.image.manifest.home,
        )

    async def _machine(self, vm: VmProcess, image: GuestImage) -> Machine:
        port = await vm.agent_port() if image.manifest.agent else 0
        return Machine(vm, f"127.0.0.1:{port}" if port else "")


async def overlay(backing: Path, path: Path) -> None:
    """A copy-on-write disk on top of `backing`, which is never written."""
    await tool("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(backing), str(path))


async def tool(*argv: str) -> None:
    """Run a program to its end. Raises EnvError with its words."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as exc:
        raise EnvError(f"{argv[0]} is not installed: apt-get install qemu-utils", permanent=True) from exc
    try:
        async with asyncio.timeout(TOOL_LIMIT_S):
            _, error = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    if process.returncode:
        raise EnvError(f"{argv[0]} failed: {error.decode(errors='replace').strip()[:300]}")


def _flush(address: str) -> None:
    """What programs wrote must be on the template's disk, not only in its page cache."""
    with AgentClient(address, timeout_s=SYNC_LIMIT_S) as agent:
        agent.execute(["sync"], timeout_s=SYNC_LIMIT_S)


def initialise_clone(address: str) -> None:
    """Tell a clone the time and give it randomness of its own; it woke up with the template's."""
    with AgentClient(address, timeout_s=INITIALISE_LIMIT_S) as agent:
        _post(agent, "/reseed", {"entropy": secrets.token_hex(ENTROPY_BYTES)})
        _post(agent, "/clock", {"unix_s": time.time()})


def set_clock(address: str) -> None:
    """Set a machine's clock; while it stood still, its clock did."""
    with AgentClient(address, timeout_s=INITIALISE_LIMIT_S) as agent:
        _post(agent, "/clock", {"unix_s": time.time()})


def _post(agent: AgentClient, path: str, body: dict[str, object]) -> None:
    status, raw = agent.call("POST", path, json.dumps(body).encode())
    if status == 404:
        log.warning("the guest's agent has no %s: clones keep the template's", path)
    elif status != 200:
        raise EnvError(f"{path} failed in a clone: {raw[:200].decode(errors='replace')}")
