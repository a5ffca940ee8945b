"""Disk, network, input and serial ports of a machine, by what its guest has drivers for."""

from collections.abc import Callable
from pathlib import Path

from workers.desktops.qemu.machine_identity import AGENT, DISK, LOG, UEFI_VARIABLES, MachineSpec

UEFI_CODE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
DISC_DRIVE = "disc0"
"""Name of the disc drive for the monitor."""


def virtio(spec: MachineSpec) -> list[str]:
    """Devices made for virtual machines: the fastest."""
    line = ["-drive", f"file={DISK},if=none,id=disk0,format=qcow2,cache=unsafe,discard=unmap"]
    line += ["-device", "virtio-blk-pci,drive=disk0"]
    # restrict: the guest reaches nothing, only its agent is reached. Port 0: the kernel finds a free one.
    port = spec.image.manifest.agent.port if spec.image.manifest.agent else 0
    forward = f",hostfwd=tcp:127.0.0.1:0-:{port}" if port else ""
    wall = f"restrict=off,tftp={spec.offered}" if "network" in spec.weakened else "restrict=on"
    line += [
        "-netdev",
        f"user,id=net0,{wall}{forward}",
        "-device",
        "virtio-net-pci,netdev=net0,romfile=",
    ]
    input_devices = ["-device", "virtio-keyboard-pci", "-device", "virtio-tablet-pci"]
    return [*line, *input_devices, "-device", "virtio-rng-pci"]


def plain(spec: MachineSpec) -> list[str]:
    """Emulated devices that every system knows: IDE, PS/2 keys, USB tablet, e1000, a serial port."""
    line = _firmware(spec)
    line += ["-drive", f"file={DISK},if=none,id=disk0,format=qcow2,cache=unsafe,discard=unmap"]
    line += ["-device", "ide-hd,drive=disk0,bus=ide.0"]
    line += ["-device", f"ide-cd,id={DISC_DRIVE},bus=ide.1"]
    # restrict: Windows sees a cable and an address, but reaches nothing.
    line += ["-netdev", "user,id=net0,restrict=on", "-device", "e1000,netdev=net0,romfile="]
    line += ["-device", "piix3-usb-uhci,id=usb0", "-device", "usb-tablet,bus=usb0.0"]
    line += ["-chardev", f"socket,id=agent0,path={AGENT},server=on,wait=off"]
    return [*line, "-serial", "chardev:agent0", "-serial", f"file:{LOG}"]


def _firmware(spec: MachineSpec) -> list[str]:
    if not spec.uefi:
        return []
    code = f"if=pflash,unit=0,format=raw,readonly=on,file={UEFI_CODE}"
    return ["-drive", code, "-drive", f"if=pflash,unit=1,format=raw,file={UEFI_VARIABLES}"]


HARDWARE: dict[str, Callable[[MachineSpec], list[str]]] = {"virtio": virtio, "plain": plain}
"""`hardware` of image.json -> QEMU's arguments for everything but processor, memory, display and monitors."""
