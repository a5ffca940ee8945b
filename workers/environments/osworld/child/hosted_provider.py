"""Our desktops as a provider of DesktopEnv. The desk host owns them; the parent is asked to reset one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from desktop_env.providers.base import Provider, VMManager

NO_PORT = 1
"""Nothing listens there: DesktopEnv reads no VNC port."""


@dataclass(frozen=True)
class Ports:
    """Loopback ports of this process that lead into the desktop."""

    agent: int
    browser: int
    """Where a task's Chrome can be debugged."""
    player: int
    """VLC's web interface."""


class HostedProvider(Provider):
    """One desktop that exists already."""

    def __init__(self, ports: Ports, ask: Callable[[str], None]) -> None:
        super().__init__("")
        self._ports = ports
        self._ask = ask

    def start_emulator(self, path_to_vm: str, headless: bool, os_type: str = "Ubuntu") -> None:
        """The desk host has started it."""

    def get_ip_address(self, path_to_vm: str) -> str:
        ports = self._ports
        return f"127.0.0.1:{ports.agent}:{ports.browser}:{NO_PORT}:{ports.player}"

    def save_state(self, path_to_vm: str, snapshot_name: str) -> None:
        raise NotImplementedError("the desk host keeps the clean state of its desktops itself")

    def revert_to_snapshot(self, path_to_vm: str, snapshot_name: str) -> str:
        self._ask("revert")
        return path_to_vm

    def stop_emulator(self, path_to_vm: str) -> None:
        """The parent gives the desktop back."""


class HostedManager(VMManager):
    """There is one desktop, and nothing to register."""

    def get_vm_path(self, **_: Any) -> str:
        return "hosted"

    def initialize_registry(self, **_: Any) -> None:
        pass

    def add_vm(self, vm_path: str, *_: Any, **__: Any) -> None:
        pass

    def delete_vm(self, vm_path: str, *_: Any, **__: Any) -> None:
        pass

    def occupy_vm(self, vm_path: str, pid: int, *_: Any, **__: Any) -> None:
        pass

    def list_free_vms(self, **_: Any) -> list[str]:
        return []

    def check_and_clean(self, **_: Any) -> None:
        pass
