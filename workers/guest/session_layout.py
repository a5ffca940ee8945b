"""Where everything is in a desktop, and how large: what its maker tells the agent."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Paths and sizes of this desktop, as its own processes see them."""

    home: str
    tmp: str
    runtime_dir: str
    """XDG_RUNTIME_DIR; holds the session bus."""
    run_dir: str
    """Shared with the host: X, VNC and agent sockets."""
    skeleton: str
    wm_config: str
    width: int
    height: int
    display: int | None
    """Display number, None = any free one (no private network namespace)."""
    scratch: tuple[str, ...] = ()
    """Further writable folders that a reset empties."""
    machine: bool = False
    """A virtual machine of its own: Xorg on its display, a panel, and its provider resets it as a whole."""
    accessibility: bool = False
    """Programs publish their widgets for GET /accessibility; costs 20 MB and slows their start."""
    agent_port: int = 0
    """TCP port of the agent, 0 = the unix socket in run_dir."""
    host_address: str = ""
    """From where alone the agent takes connections; "" = from everywhere."""
    space_mb: int = 0
    """Programs live in a space of their own with so much room for HOME, and as much for all else; 0 = not."""
    max_processes: int = 0
    disk_mb: int = 0
    """What programs may keep on a machine's disk."""
    bwrap: str = "bwrap"
    call_filter: str = ""
    """File with the system call filter of programs."""
    weakened: tuple[str, ...] = ()
    """Defences that tests leave out, to see what they hold off."""
    user: str = ""
    """Who programs of a machine are; its agent is root."""

    @property
    def vnc_socket(self) -> str:
        return os.path.join(self.run_dir, "vnc.sock")
