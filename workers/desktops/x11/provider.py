"""Provider `x11`: a real X11 desktop in processes, in a bubblewrap sandbox where the machine allows it.

Xvnc (display and VNC in one process), openbox, a session bus and our agent; 0.3 s to a stable screen.
Without user namespaces there are no desktops, or plain processes with their own HOME where a person allowed
that; without Xvnc it is Xvfb (no VNC). `probe` says so.
"""

import os
from pathlib import Path

from training.contracts.config.providers.x11 import OFFICE, X11
from workers.desktops.contract import DesktopSpec, EnvError, Health
from workers.desktops.host_storage import UNSAFE_OPTION
from workers.desktops.x11 import sandbox
from workers.desktops.x11.desktop import SYSTEM_PYTHON, X11Desktop
from workers.desktops.x11.system_root import OWN, VARIABLE, desktop_root, has_program
from workers.processes.cgroups import usable_controllers
from workers.processes.unix_socket import MAX_PATH_BYTES

SANDBOX_REMEDY = (
    "apt-get install bubblewrap, and allow unprivileged user namespaces; "
    f"{UNSAFE_OPTION} gives desktops that are not isolated"
)
PACKAGES = {
    "openbox": "openbox",
    "dbus-daemon": "dbus-x11",
    SYSTEM_PYTHON: "python3",
    "xkbcomp": "x11-xkb-utils",
}


class X11Provider:
    """Starts X11 desktops on this machine."""

    info = X11

    def __init__(
        self,
        *,
        force_plain: bool = False,
        allows_unsafe: bool = False,
        weakened: frozenset[str] = frozenset(),
    ) -> None:
        """`allows_unsafe`: plain processes where no sandbox works; `force_plain`: in any case."""
        self._force_plain = force_plain
        self._weakened = weakened
        """Defences left out, so that tests can show what each of them holds off."""
        self._allows_unsafe = allows_unsafe or force_plain

    @property
    def is_sandboxed(self) -> bool:
        return not self._force_plain and not sandbox.sandbox_problem()

    def probe(self) -> Health:
        """What works here and what to install for the rest."""
        health = Health(provider=self.info.name, usable=True)
        try:
            root = desktop_root()
        except EnvError as exc:
            health.usable = False
            health.reasons.append(str(exc))
            health.remedies.append(f"unset {VARIABLE}, or name the folder of a Debian system")
            return health
        for program, package in PACKAGES.items():
            if not has_program(root, program):
                health.usable = False
                health.reasons.append(f"{program} is not installed")
                health.remedies.append(f"apt-get install {package}")
        if not has_program(root, "Xvnc"):
            health.usable = health.usable and has_program(root, "Xvfb")
            health.reasons.append("Xvnc is not installed: desktops have no VNC")
            health.remedies.append("apt-get install tigervnc-standalone-server")
        problem = "switched off" if self._force_plain else sandbox.sandbox_problem()
        if problem and root != OWN:
            health.usable = False
            health.reasons.append(f"{VARIABLE} needs the sandbox")
            health.remedies.append(f"unset {VARIABLE}")
        if problem:
            health.usable = health.usable and self._allows_unsafe
            health.reasons.append(
                f"desktops are not isolated ({problem}): they see this machine's files and network"
                if self._allows_unsafe
                else f"no sandbox works here ({problem}), so there are no desktops"
            )
            health.remedies.append(SANDBOX_REMEDY)
        if os.geteuid() == 0:
            health.reasons.append(f"desktops run with root's user number, because of {UNSAFE_OPTION}")
            health.remedies.append(f"start the desk host without {UNSAFE_OPTION}: it finds a user of its own")
        if "memory" not in usable_controllers():
            health.reasons.append(
                "no memory control group: the desk host itself ends desktops above their limit"
            )
            health.remedies.append(
                "nothing to do; run the desk host outside a container for kernel-enforced limits"
            )
        if problem and "pids" not in usable_controllers():
            health.reasons.append("no pids control group: the number of processes is not limited")
            health.remedies.append("nothing to do; run the desk host outside a container for that limit")
        server = "Xvnc" if has_program(root, "Xvnc") else "Xvfb"
        health.mode = f"{'plain processes' if problem else 'sandbox'}, {server}"
        return health

    def boot_phase(self, desktop_id: str) -> str:
        return ""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> X11Desktop:
        """Start a desktop in `folder`. Raises EnvError; nothing is left behind then."""
        run_dir = folder / "run"
        if not self.is_sandboxed and not self._allows_unsafe:
            problem = f"no sandbox works here ({sandbox.sandbox_problem()})"
            raise EnvError(f"{problem}; {SANDBOX_REMEDY}", permanent=True)
        if not self.is_sandboxed and len(f"{run_dir}/agent.sock") > MAX_PATH_BYTES:
            message = f"state folder path is too long for unix sockets: {folder}; use a shorter --state-dir"
            raise EnvError(message, permanent=True)
        root = desktop_root()
        if root != OWN and not self.is_sandboxed:
            raise EnvError(f"{VARIABLE} needs the sandbox: {sandbox.sandbox_problem()}", permanent=True)
        if spec.image == OFFICE and not has_program(root, "soffice"):
            raise EnvError(
                "LibreOffice is not installed for x11 desktops; run `make setup-office`", permanent=True
            )
        folder.mkdir(parents=True, mode=0o700)  # X makes the socket folder below world-writable
        run_dir.mkdir()
        desktop = X11Desktop(
            folder=folder, spec=spec, is_sandboxed=self.is_sandboxed, root=root, weakened=self._weakened
        )
        try:
            await desktop.start(desktop_id)
        except BaseException:
            await desktop.destroy()
            raise
        return desktop
