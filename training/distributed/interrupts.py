"""Stopping on purpose: pause, cancel and SIGTERM, agreed by all ranks.

Only rank 0 hears the coordinator, so what it hears travels to its peers with the result of
the work that it did alone. Every rank then leaves the loop at the same place.
"""

import signal
from collections.abc import Callable
from typing import TypeVar

from training.contracts.types import Control
from training.distributed.world import World, from_main

T = TypeVar("T")


class Interrupted(Exception):
    """Raised between units of work when the supervisor wants a pause or a cancel."""

    def __init__(self, command: Control) -> None:
        self.command = command
        super().__init__(command)


class TermSignal:
    """Turns SIGTERM into a flag, so that a step is finished and a checkpoint is saved."""

    def __init__(self) -> None:
        self.was_received = False

    def install(self) -> None:
        """Listen from now on."""
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, _number: int, _frame: object) -> None:
        self.was_received = True


def on_main(world: World, work: Callable[[], T]) -> T:
    """Do `work` on rank 0 and give its result to every rank; an Interrupted is raised on every rank."""
    outcome: tuple[T | None, Control | None] | None = None
    if world.is_main:
        try:
            outcome = (work(), None)
        except Interrupted as stop:
            outcome = (None, stop.command)
    if world.size > 1:
        outcome = from_main(outcome)
    assert outcome is not None
    value, command = outcome
    if command is not None:
        raise Interrupted(command)
    return value  # type: ignore[return-value]
