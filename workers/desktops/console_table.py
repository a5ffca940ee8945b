"""Screen and input of one desktop, by the name that its `Endpoints.console` gives: one row per technology.

Rows import late, so that a worker loads only what its desktops need.
"""

from __future__ import annotations

from collections.abc import Callable

from workers.desktops.console import Console
from workers.desktops.contract import Endpoints, EnvError, ErrorKind


def _x11(endpoints: Endpoints) -> Console:
    from workers.desktops.x11.console import X11Console

    return X11Console(endpoints)


def _qmp(endpoints: Endpoints) -> Console:
    from workers.desktops.qemu.console import QmpConsole

    return QmpConsole(endpoints)


def _qmp_slow(endpoints: Endpoints) -> Console:
    from workers.desktops.qemu.slow_console import QmpSlowConsole

    return QmpSlowConsole(endpoints)


CONSOLES: dict[str, Callable[[Endpoints], Console]] = {
    "x11": _x11,
    "qmp": _qmp,
    "qmp-slow": _qmp_slow,
}


def open_console(endpoints: Endpoints) -> Console:
    """Connect to a desktop's screen. Raises EnvError."""
    make = CONSOLES.get(endpoints.console)
    if make is None:
        known = ", ".join(CONSOLES)
        message = f"console: there is no {endpoints.console!r}; known: {known}"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
    return make(endpoints)
