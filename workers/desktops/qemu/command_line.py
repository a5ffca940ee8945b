"""The command line of a machine. A snapshot fits only a machine with exactly the same line.

Everything that differs between two clones (sockets, overlay, log) is named relative to the folder in
which QEMU runs, so equal machines have equal lines.
"""

import functools
import re
import shutil
import subprocess

from workers.desktops.contract import EnvError
from workers.desktops.qemu.devices import HARDWARE
from workers.desktops.qemu.machine_identity import CONSOLE, LOG, MONITOR, RAM, VNC, MachineSpec

PROGRAM = "qemu-system-x86_64"
MACHINE = "pc-i440fx-7.2"
"""Versioned: `pc` means another machine after an upgrade of QEMU."""
CPU = {"tcg": "Nehalem", "kvm": "host"}
"""Under TCG a plain processor is faster: AVX is emulated slowly."""
TB_CACHE_MB = 96
"""Translated code per machine; QEMU's own choice costs 250 MB more for 5 % of speed."""
VIDEO_MB = 16
OVERHEAD_MB = 320
"""What QEMU needs beside the machine's memory: translated code, its own heap, video memory."""


def argv(spec: MachineSpec, *, shared: bool, incoming: bool = False) -> list[str]:
    """QEMU's command line, to be run in the machine's folder.

    shared: memory is written through to the file `ram` (a template); else it is a private copy of it.
    incoming: wait for a snapshot instead of starting.
    """
    image = spec.image
    accelerator = "kvm" if spec.accelerator == "kvm" else f"tcg,thread=multi,tb-size={TB_CACHE_MB}"
    memory = (
        f"memory-backend-file,id=ram0,size={spec.memory_mb}M,mem-path={RAM},share={'on' if shared else 'off'}"
    )
    line = [PROGRAM, "-machine", f"{MACHINE},memory-backend=ram0", "-accel", accelerator]
    line += ["-cpu", CPU[spec.accelerator], "-smp", str(spec.vcpus), "-m", f"{spec.memory_mb}M"]
    line += ["-object", memory, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"]
    line += ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
    line += _boot(spec)
    line += HARDWARE[image.manifest.hardware](spec)
    video = f"VGA,vgamem_mb={VIDEO_MB},edid=on,xres={spec.width},yres={spec.height}"
    line += ["-device", video, "-vnc", f"unix:{VNC}", "-serial", f"file:{LOG}"]
    for name in (MONITOR, CONSOLE):
        line += ["-qmp", f"unix:{name},server=on,wait=off"]
    return [*line, "-incoming", "defer"] if incoming else line


def _boot(spec: MachineSpec) -> list[str]:
    """Direct kernel boot where the image has a kernel of its own, else firmware and boot loader."""
    image = spec.image
    if image.kernel is None:
        return []
    line = ["-kernel", str(image.kernel)]
    if image.initrd is not None:
        line += ["-initrd", str(image.initrd)]
    without = f" deskhand.without={','.join(sorted(spec.weakened))}" if spec.weakened else ""
    return [*line, "-append", image.manifest.command_line + without]


@functools.cache
def qemu_version() -> str:
    """Version of the installed QEMU, e.g. "7.2.22". Raises EnvError."""
    path = shutil.which(PROGRAM)
    if path is None:
        message = f"{PROGRAM} is not installed: apt-get install qemu-system-x86 qemu-utils"
        raise EnvError(message, permanent=True)
    text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    found = re.search(r"version (\d+\.\d+\.\d+)", text)
    if found is None:
        raise EnvError(f"{PROGRAM} --version says nothing useful: {text[:100]!r}", permanent=True)
    return found[1]
