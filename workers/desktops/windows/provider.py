"""Provider `windows`: the user's own Windows image on the machinery of `qemu`.

What differs is in `WindowsMachineFactory`: plain hardware, the guest agent on a serial port, login as a phase
of the template's start. Clones wake up logged in.
"""

import dataclasses
import hashlib
import json
import secrets
import shutil
from pathlib import Path

from training.contracts.config.providers.windows import WINDOWS
from training.outgoing.secret_store import SecretError, read_secret
from workers.desktops.contract import BootFailed, DesktopSpec, Endpoints, EnvError, Health
from workers.desktops.qemu.base_images import GuestImage, ImageError
from workers.desktops.qemu.boot_phases import Machine, Progress
from workers.desktops.qemu.devices import UEFI_CODE
from workers.desktops.qemu.machine_identity import AGENT, CONSOLE, UEFI_VARIABLES, VNC, MachineSpec
from workers.desktops.qemu.provider import QemuProvider
from workers.desktops.qemu.template_store import DEFAULT_LIMIT_MB, Template
from workers.desktops.qemu.templates_and_clones import MachineFactory
from workers.desktops.qemu.vm_process import VmProcess
from workers.desktops.windows.boot_phases import LoginFailed, wait_until_ready
from workers.desktops.windows.image_settings import HINT, secrets_folder, settings_of
from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient

DEFAULT_IMAGE = "windows"
INITIALISE_LIMIT_S = 30.0


class WindowsMachineFactory(MachineFactory):
    """Makes templates and clones of Windows machines."""

    def __init__(self, images: Path, templates: Path, *, limit_mb: int = DEFAULT_LIMIT_MB) -> None:
        super().__init__(images, templates, limit_mb=limit_mb)
        self._salt = secrets.token_bytes(16)
        self._refused: dict[str, str] = {}
        """Logins that did not come through -> why; none is typed twice, since accounts lock."""

    async def template(self, machine: MachineSpec, progress: Progress) -> Template:
        login = self._login_mark(machine)
        if self.find(self.key(machine), machine) is None and login in self._refused:
            message = f"{self._refused[login]} It is not typed again: correct the secret or the steps first"
            raise EnvError(message, permanent=True)
        try:
            return await super().template(machine, progress)
        except BootFailed as failure:
            if isinstance(failure.__cause__, LoginFailed):
                self._refused[login] = f"{failure}."
            raise

    def _login_mark(self, machine: MachineSpec) -> str:
        """Names a login as it would be typed now; another secret gives another name."""
        login = settings_of(machine.image).login
        try:
            password = read_secret(login.secret, self._secrets_folder()) if login else ""
        except SecretError:
            password = ""  # the login phase says so
        typed = f"{machine.image.manifest.sha256} {login} {password}".encode()
        return hashlib.sha256(self._salt + typed).hexdigest()

    async def machine_spec(self, spec: DesktopSpec) -> MachineSpec:
        wanted = spec.model_copy(update={"image": spec.image or DEFAULT_IMAGE})
        machine = await super().machine_spec(wanted)
        path = machine.image.folder / "image.json"
        if machine.image.manifest.hardware != "plain":
            raise ImageError(f'{path}: hardware must be "plain" for provider windows; {HINT}')
        uefi = settings_of(machine.image).firmware == "uefi"
        if uefi and not UEFI_CODE.exists():
            raise EnvError(f"{UEFI_CODE} is missing: apt-get install ovmf", permanent=True)
        return dataclasses.replace(machine, uefi=uefi)

    def probe_kernel(self, image: GuestImage) -> Path | None:
        """Windows has no kernel that boots by itself; any registered Linux image's serves."""
        kernels = sorted(self.images.folder.glob("*/vmlinuz"))
        return image.kernel or (kernels[0] if kernels else None)

    def add_image_files(self, image: GuestImage, folder: Path) -> None:
        """UEFI writes its variables: every machine has its own."""
        if settings_of(image).firmware == "uefi":
            shutil.copyfile(image.folder / UEFI_VARIABLES, folder / UEFI_VARIABLES)
            (folder / UEFI_VARIABLES).chmod(0o600)

    async def wait_until_ready(self, running: Machine, machine: MachineSpec, progress: Progress) -> None:
        screen = (machine.width, machine.height)
        await wait_until_ready(running, screen, progress, settings_of(machine.image), self._secrets_folder())

    def _secrets_folder(self) -> Path:
        return secrets_folder(self.images.folder)

    def flush(self, address: str) -> None:
        """Windows flushes by itself; what a template keeps in memory is part of the snapshot."""

    def running_programs(self, address: str) -> list[str]:
        """Windows starts and ends programs of its own all the time."""
        return []

    def initialise_clone(self, address: str, template: Template) -> None:
        """The clone's agent answers. Its clock stays as it is: setting it can end an activation."""
        with GuestAgentClient(address, timeout_s=INITIALISE_LIMIT_S) as agent:
            agent.call("guest-ping")

    def set_clock(self, address: str) -> None:
        """A machine that stood still keeps its clock, too."""

    def endpoints(self, running: Machine, machine: MachineSpec) -> Endpoints:
        return Endpoints(
            console="qmp-slow",
            qmp=str(running.vm.folder / CONSOLE),
            agent=running.agent,
            agent_protocol="guest-agent",
            vnc=str(running.vm.folder / VNC),
            cpu_account=running.vm.cpu_account,
            home=machine.image.manifest.home,
        )

    async def _machine(self, vm: VmProcess, image: GuestImage) -> Machine:
        return Machine(vm, str(vm.folder / AGENT))


class WindowsProvider(QemuProvider):
    """Starts Windows machines on this machine."""

    info = WINDOWS
    factory_class = WindowsMachineFactory

    def probe(self) -> Health:
        """Usable once a Windows image is registered."""
        health = super().probe()
        names = [name for name in self.factory.images.names() if self._is_windows(name)]
        if not names:
            health.usable = False
            health.reasons.append("no Windows image is registered")
            health.remedies.append(f"python -m workers.desktops.windows register ...; {HINT}")
        return health

    def _is_windows(self, name: str) -> bool:
        path = self.factory.images.folder / name / "image.json"
        try:
            return json.loads(path.read_text()).get("os") == "windows"
        except (OSError, ValueError):
            return False
