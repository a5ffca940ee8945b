"""A slot is one thread of an env worker with one environment, kept between trajectories.

    nothing -> clean -> (a trajectory) -> dirty -> reset -> clean -> (idle) -> nothing
An environment is reset right after its trajectory, so the next one starts on a clean screen at once.
"""

import logging
import threading
import time

from training.contracts.config import DesktopConfig
from webapp.worker_door.parking import end_remote_desktop
from workers import identity
from workers.desktops.contract import EnvError
from workers.desktops.desktop_texts import NOTHING, Reads
from workers.environments.registry import ENVIRONMENTS, Environment, EnvironmentRequest
from workers.reports.current import reports

log = logging.getLogger(__name__)

IDLE_S = 120.0
"""A slot that had no trajectory for this long gives its environment back."""


class Slot:
    """The environment of one thread."""

    def __init__(self) -> None:
        self._environment: Environment | None = None
        self._request: EnvironmentRequest | None = None
        self._is_dirty = False
        self._is_busy = False
        """From `clean` to `reset_after_trajectory`."""
        self._used_at = time.monotonic()
        self._giving_up = threading.Lock()

    def clean(self, request: EnvironmentRequest) -> Environment:
        """A clean environment of this kind; `reset_after_trajectory` has to follow. Raises EnvError."""
        with self._giving_up:
            self._is_busy = True
        if self._environment is not None and (self._request != request or self._environment.is_lost):
            self.drop()
        if self._environment is None:
            self._environment = ENVIRONMENTS[request.provider](request)
            self._request = request
        if self._is_dirty:
            self._environment.reset()
        self._is_dirty = True
        return self._environment

    def reset_after_trajectory(self) -> None:
        """Clean up after a trajectory; an environment that cannot be cleaned is given back."""
        try:
            if self._environment is not None and self._is_dirty:
                self._environment.reset()
                self._is_dirty = False
        except EnvError as error:
            log.warning("desktop given back, its reset failed: %s", error)
            self.drop()
        finally:
            self._used_at = time.monotonic()
            self._is_busy = False

    def give_up_idle(self, idle_s: float) -> None:
        """Called from another thread: drop an environment that was not used for `idle_s`."""
        with self._giving_up:
            if not self._is_busy and time.monotonic() - self._used_at > idle_s:
                self.drop()

    def drop(self) -> None:
        """Give the environment back. Idempotent."""
        environment, self._environment = self._environment, None
        self._request = None
        self._is_dirty = False
        if environment is not None:
            reports().report(end_remote_desktop, environment.desktop_id)
            environment.close()


_local = threading.local()
_all: list[Slot] = []


def _slot() -> Slot:
    if not hasattr(_local, "slot"):
        _local.slot = Slot()
        _all.append(_local.slot)
    return _local.slot


def clean_environment(
    config: DesktopConfig, screen: tuple[int, int], key: str, reads: Reads = NOTHING
) -> Environment:
    """This thread's environment, clean. `key` names the trajectory."""
    holder = f"{identity.current().name}/{threading.current_thread().name}"
    return _slot().clean(EnvironmentRequest.of(config, screen, holder=holder, key=key, reads=reads))


def reset_after_trajectory() -> None:
    """Clean this thread's environment after its trajectory."""
    _slot().reset_after_trajectory()


def drop_environment() -> None:
    """Give this thread's environment back: something was wrong with it."""
    _slot().drop()


def give_up_idle(idle_s: float = IDLE_S) -> None:
    """Give back what the slots of this process have not used for a while."""
    for slot in _all:
        slot.give_up_idle(idle_s)


def release_all() -> None:
    """At shutdown: give every environment of this process back."""
    for slot in _all:
        slot.drop()
