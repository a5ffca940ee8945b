"""What a worker's way to the web application offers, whichever it is."""

from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol, TypeVar

from django.db import OperationalError

from webapp.worker_door.trajectories import TrajectoryNow
from workers.desktops.frame import Frame

P = ParamSpec("P")
T = TypeVar("T")


class ServerAway(OperationalError):
    """Raised when the server does not answer: for a worker the same as a database that is away."""


class CallRefused(Exception):
    """Raised when the server does not take this host or its call; the message says what to do."""


class Reports(Protocol):
    """Makes the calls of `webapp/worker_door`; each is named by its function, and typed by it.

    Raises database errors, also of a server that is away, and CallRefused.
    """

    is_joined: bool
    """The server is another machine, which sees no file and no unix socket of this one."""

    def report(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """It is recorded once, in the order of this worker's reports."""
        ...

    def report_with_screen(
        self, team_id: int, frame: Frame, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """The same of a report that names a screenshot, which is stored first."""
        ...

    def request(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    def show_screen(self, trajectory_id: int, index: int, frame: Frame) -> None:
        """To those who watch, before it is recorded as turn `index`."""
        ...

    def beat_trajectories(self, running: Sequence[int]) -> None:
        """The heartbeat of all that this process runs."""
        ...

    def trajectory_now(self, trajectory_id: int) -> TrajectoryNow:
        """What was decided elsewhere about one that runs."""
        ...
