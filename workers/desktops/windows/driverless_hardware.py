"""The emulated hardware of a machine whose guest has no drivers of ours: what every Windows knows.

IDE disk and disc drive, PS/2 keys, USB tablet, e1000 network, the agent on the first serial port.
"""

from __future__ import annotations

from workers.desktops.qemu.command_line import DISK, LOG, MachineSpec
from workers.desktops.qemu.slow_console import DRIVE
from workers.desktops.windows.image_settings import FIRMWARE, VARS, settings_of

AGENT = "agent"
"""Unix socket of the first serial port, in the machine's folder."""


def devices(spec: MachineSpec) -> list[str]:
    """QEMU's arguments for everything but processor, memory, display and monitors."""
    line = _firmware(spec)
    line += ["-drive", f"file={DISK},if=none,id=disk0,format=qcow2,cache=unsafe,discard=unmap"]
    line += ["-device", "ide-hd,drive=disk0,bus=ide.0"]
    line += ["-device", f"ide-cd,id={DRIVE},bus=ide.1"]
    # restrict: Windows sees a cable and an address, but reaches nothing.
    line += ["-netdev", "user,id=net0,restrict=on", "-device", "e1000,netdev=net0,romfile="]
    line += ["-device", "piix3-usb-uhci,id=usb0", "-device", "usb-tablet,bus=usb0.0"]
    line += ["-chardev", f"socket,id=agent0,path={AGENT},server=on,wait=off"]
    return [*line, "-serial", "chardev:agent0", "-serial", f"file:{LOG}"]


def _firmware(spec: MachineSpec) -> list[str]:
    if settings_of(spec.image).firmware == "bios":
        return []
    code = f"if=pflash,unit=0,format=raw,readonly=on,file={FIRMWARE}"
    return ["-drive", code, "-drive", f"if=pflash,unit=1,format=raw,file={VARS}"]
