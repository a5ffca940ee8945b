"""What makes two machines the same, and the names of the files in a machine's folder."""

from dataclasses import dataclass

from workers.desktops.qemu.base_images import GuestImage

DISK, RAM, LOG = "disk.qcow2", "ram", "console.log"
MONITOR, CONSOLE, VNC, AGENT = "monitor", "console", "vnc", "agent"
"""Unix sockets; AGENT is the first serial port of a machine with plain hardware."""
UEFI_VARIABLES = "vars.fd"
"""Also in the folder of an image that boots by UEFI: every machine has a private copy."""


@dataclass(frozen=True)
class MachineSpec:
    """Everything that a machine's command line depends on."""

    image: GuestImage
    width: int
    height: int
    memory_mb: int
    vcpus: int
    accelerator: str
    """tcg or kvm."""
    uefi: bool = False
    """Boots by UEFI instead of BIOS; hardware `plain` only."""
    weakened: frozenset[str] = frozenset()
    """Defences left out, by tests only: agent, port, files, reading, judging, limits, display; network."""
    offered: str = ""
    """Folder of this machine that a weakened network offers to the guest."""
