"""Offers the screen of a running trajectory to people, through this process's relay."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from webapp.worker_door import human_control
from workers.desktops.contract import EnvError
from workers.env.takeover.vnc_relay import Relay
from workers.environments.contract import Watchable
from workers.environments.registry import Environment
from workers.reports.current import reports

NO_SCREEN = (
    "this {provider} desktop has no VNC server that a person could use; see its host on the fleet page"
)

NOT_REACHED = (
    "people cannot reach the screens of this joined host: set DESKHAND_SCREEN_HOST there, see docs/hosts.md"
)

_relay: Relay | None = None
_relay_lock = threading.Lock()


def _relay_of_process() -> Relay:
    global _relay
    with _relay_lock:
        if _relay is None:
            _relay = Relay(Path(settings.RUN_DIR), _read_ticket, settings.SCREEN_HOST)
        return _relay


def _read_ticket(ticket: str) -> int | None:
    return reports().request(human_control.read_ticket, ticket)


@contextlib.contextmanager
def screen_offered(
    trajectory_id: int, environment: Environment, *, is_needed: bool = False
) -> Iterator[None]:
    """Inside the block people can watch the environment and ask for control, if it has a screen to offer.

    `is_needed`: a person is to demonstrate on it. Raises EnvError when it has none.
    """
    if not isinstance(environment, Watchable) or not environment.vnc_socket:
        if is_needed:
            raise EnvError(NO_SCREEN.format(provider=environment.provider), permanent=True)
        yield
        return
    if is_needed and reports().is_joined and not settings.SCREEN_HOST:
        raise EnvError(NOT_REACHED, permanent=True)
    with _relay_of_process().offered(trajectory_id, lambda: environment.vnc_socket) as addresses:
        reached = [at for at in addresses if not (reports().is_joined and at.startswith("unix:"))]
        reports().report(human_control.open_screen, trajectory_id, reached)
        try:
            yield
        finally:
            reports().report(human_control.close_screen, trajectory_id)
