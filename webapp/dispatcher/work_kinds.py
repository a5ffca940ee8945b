"""Kinds of long work, and the one way in which a process does a row of any of them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.module_loading import import_string

from webapp.lib.long_work import BadEnd, LongWork, TakenAway, WorkRefused

log = logging.getLogger(__name__)
Stopping = Callable[[], bool]


@dataclass(frozen=True)
class WorkKind:
    """What other applications register."""

    name: str
    """`manage.py run_work NAME ID` does a row of it."""
    rows: type[LongWork]
    steps: str
    """Function that does a row that was taken, an iterable; after each step the process may be stopped and
    nothing is lost. Imported when it runs."""
    find_next: Callable[[], int | None] | None = None
    """Where more than `LongWork.next_waiting` decides it."""
    on_death: Callable[[int, BadEnd], None] | None = None
    """Where a process holds more than the row that it was started for."""
    max_memory: int | None = None
    """Bytes that its process may take."""

    def next_waiting(self) -> int | None:
        """The row that a process is to be started for."""
        return self.find_next() if self.find_next else self.rows.next_waiting()

    def ended_badly(self, pk: int, end: BadEnd) -> None:
        """End the row with the reason, or free it for another process."""
        if self.on_death:
            self.on_death(pk, end)
        elif (row := self.rows._default_manager.filter(pk=pk).first()) is not None:
            row.lose(end)

    def run(self, pk: int, is_stopping: Stopping = lambda: False) -> None:
        """Take the row and work until nothing is left, a cancellation, or `is_stopping`."""
        row = self.rows.take(pk)
        if row is None:
            return
        try:
            for _ in import_string(self.steps)(row):
                if is_stopping():
                    row.release()
                    return
        except WorkRefused as refused:
            row.fail(str(refused))
        except TakenAway:
            log.info("%s was cancelled, or another process has it", row)


kinds: dict[str, WorkKind] = {}


def register(kind: WorkKind) -> None:
    """Have the dispatcher start processes for it."""
    kinds[kind.name] = kind
