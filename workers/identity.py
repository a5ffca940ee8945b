"""Who this worker process is: its Celery node name, queue and slots."""

import os
import socket
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    queue: str
    slots: int
    host: str = field(default_factory=socket.gethostname)

    @property
    def pid(self) -> int:
        return os.getpid()


_current: list[Identity] = []


def announce(identity: Identity) -> None:
    """Called once, when Celery has parsed its command line."""
    _current[:] = [identity]


def current() -> Identity:
    """This process's identity; outside a Celery worker (tests, shell) a plain local one."""
    return _current[0] if _current else Identity(name=f"local@{socket.gethostname()}", queue="env", slots=1)
