"""The tables of desktop technologies: providers, consoles and agents by name.

Rows import late: a row may need what another host lacks, and a worker loads only what its desktops need.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from workers.desktops.agent_client import AgentClient
from workers.desktops.agent_contract import Agent
from workers.desktops.console_contract import Console
from workers.desktops.contract import Endpoints, EnvError, ErrorKind, Provider
from workers.desktops.host_storage import HostStorage

Row = TypeVar("Row")


def _x11(storage: HostStorage) -> Provider:
    from workers.desktops.x11.provider import X11Provider

    return X11Provider(allows_unsafe=storage.allows_unsafe)


def _qemu(storage: HostStorage) -> Provider:
    from workers.desktops.qemu.provider import QemuProvider

    return QemuProvider(storage)


def _windows(storage: HostStorage) -> Provider:
    from workers.desktops.windows.provider import WindowsProvider

    return WindowsProvider(storage)


def _x11_console(endpoints: Endpoints) -> Console:
    from workers.desktops.x11.console import X11Console

    return X11Console(endpoints)


def _qmp_console(endpoints: Endpoints) -> Console:
    from workers.desktops.qemu.qmp_screen_and_input import QmpConsole

    return QmpConsole(endpoints)


def _driverless_console(endpoints: Endpoints) -> Console:
    from workers.desktops.qemu.driverless_console import DriverlessConsole

    return DriverlessConsole(endpoints)


def _guest_agent(address: str) -> Agent:
    from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient

    return GuestAgentClient(address)


PROVIDERS: Mapping[str, Callable[[HostStorage], Provider]] = {
    "x11": _x11,
    "qemu": _qemu,
    "windows": _windows,
}
"""The desk host's providers: those of `training.contracts.config.providers` with `is_on_desk_host`."""
CONSOLES: Mapping[str, Callable[[Endpoints], Console]] = {
    "x11": _x11_console,
    "qmp": _qmp_console,
    "qmp-slow": _driverless_console,
}
AGENTS: Mapping[str, Callable[[str], Agent]] = {
    "http": AgentClient,
    "guest-agent": _guest_agent,
}


def open_console(endpoints: Endpoints) -> Console:
    """Connect to a desktop's screen and input. Raises EnvError."""
    return _row(CONSOLES, "console", endpoints.console)(endpoints)


def open_agent(endpoints: Endpoints) -> Agent:
    """The client of a desktop's agent; it connects on the first call. Raises EnvError."""
    return _row(AGENTS, "agent_protocol", endpoints.agent_protocol)(endpoints.agent)


def _row(table: Mapping[str, Row], field: str, name: str) -> Row:
    if name not in table:
        message = f"{field}: there is no {name!r}; known: {', '.join(table)}"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
    return table[name]
