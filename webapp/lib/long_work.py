"""Long work as a row: a process takes it, beats while it works, and its page shows how that ended.

A process takes a row by raising its claim, and writes under that claim alone: one that was taken for dead
changes nothing any more.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self

from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.lib.columns.stored_fields import ReportedTextField
from webapp.lib.heartbeat_age import silent_for
from webapp.lib.transitions import sources_of

MAX_LOST = 3
"""Processes that may die with one row."""
MAX_MESSAGE = 2000
SILENT = "Its process no longer reports."


class TakenAway(Exception):
    """Raised when the row was cancelled, or another process has it: stop, and store nothing more."""


class WorkRefused(Exception):
    """Raised with what to do about a row that cannot be worked on further."""


@dataclass(frozen=True, slots=True)
class BadEnd:
    """How a process ended that did not end well."""

    why: str
    """For the page of its row."""
    may_pass: bool
    """It was killed, or the database was away: another process may get through."""


class LongWork(models.Model):
    """Columns and moves that every kind of long work has."""

    status = models.CharField(max_length=9, db_index=True)
    claim = models.IntegerField(default=0)
    """Raised by every process that takes it: only the last one may write."""
    num_lost = models.IntegerField(default=0)
    """Processes that died with it."""
    heartbeat_at = models.DateTimeField(null=True)
    """null = no process holds it."""
    message = ReportedTextField(blank=True)
    """Why it failed and what to do, or what else its end has to say."""
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    TRANSITIONS: ClassVar[Mapping[Any, Collection[Any]]]
    BEGINS: ClassVar[Mapping[Any, Any]]
    """Status that waits for a process -> status while one works."""
    AFTER_LOSS: ClassVar[Mapping[Any, Any]] = {}
    """Status while a process works -> status after its death, where that is another."""
    SILENT_AFTER: ClassVar[timedelta]
    """Without a heartbeat its process is taken for dead."""

    def publish(self) -> None:
        """Have open pages show it; last in a transaction."""
        raise NotImplementedError

    def values_at_start(self) -> dict[str, Any]:
        """Columns that a process sets as it takes the row."""
        return {}

    def may_go_on(self, num_lost: int) -> bool:
        """Is another process to try, after `num_lost` died?"""
        return num_lost < MAX_LOST

    def advice(self, num_lost: int) -> str:
        """What its last message says behind the reason."""
        return f"{num_lost} processes died." if num_lost > 1 else ""

    @classmethod
    def claimable(cls) -> QuerySet[Self]:
        """What waits for a process, and what one holds that fell silent; the next one first."""
        silent = Q(heartbeat_at=None) | silent_for(cls.SILENT_AFTER)
        working = Q(status__in=list(cls.BEGINS.values()))
        rows = cls._default_manager.filter(Q(status__in=list(cls.BEGINS)) | working & silent)
        return rows.order_by("pk")

    @classmethod
    def next_waiting(cls) -> int | None:
        """The oldest one that no living process works on."""
        return cls.claimable().values_list("pk", flat=True).first()

    @classmethod
    def take(cls, pk: int, **values: Any) -> Self | None:
        """For this process alone; None when another was first, it has ended, or too many died with it."""
        row = cls.claimable().filter(pk=pk).first()
        if row is not None and row.heartbeat_at is not None:
            row.lose(BadEnd(SILENT, may_pass=True))
        if row is None or row.ended_at is not None:
            return None
        mine = cls._default_manager.filter(pk=pk, claim=row.claim, status=row.status)
        to = cls.BEGINS.get(row.status, row.status)
        values = {**row.values_at_start(), **values, "status": to, "heartbeat_at": timezone.now()}
        return row if row._write(mine, claim=row.claim + 1, **values) else None

    @transaction.atomic
    def beat(self, **values: Any) -> None:
        """Heartbeat with how far it is. Raises TakenAway, and with it the caller's transaction ends."""
        mine = self._rows().filter(claim=self.claim, status=self.status)
        if not mine.update(heartbeat_at=timezone.now(), **values):
            raise TakenAway(str(self))
        changed = {name: value for name, value in values.items() if getattr(self, name) != value}
        for name, value in changed.items():
            setattr(self, name, value)
        if changed:
            self.publish()

    def release(self) -> None:
        """Another process may go on at once: this one has to stop."""
        self._rows().filter(claim=self.claim).update(heartbeat_at=None)

    def lose(self, end: BadEnd) -> None:
        """Its process ended badly: it ends with the reason, or says it and waits for another process."""
        num_lost = self.num_lost + 1
        if not end.may_pass or not self.may_go_on(num_lost):
            self.fail(f"{end.why} {self.advice(num_lost)}".rstrip())
        elif self.status in {*self.BEGINS, *self.BEGINS.values()}:
            mine = self._rows().filter(claim=self.claim, status=self.status)
            to = self.AFTER_LOSS.get(self.status, self.status)
            message = f"{end.why} Another one goes on."
            self._write(mine, status=to, num_lost=num_lost, message=message, heartbeat_at=None)

    def fail(self, message: str) -> bool:
        """It cannot go on; `message` says what to do."""
        return self.end("failed", message)

    def cancel(self) -> bool:
        """A person ends it; what was stored stays. False when it has ended."""
        return self.end("cancelled", "Cancelled.", by_its_process=False)

    def end(self, to: str, message: str = "", *, by_its_process: bool = True, **values: Any) -> bool:
        """Nothing more is done for it; False when something else happened to it meanwhile."""
        values = {"ended_at": timezone.now(), "heartbeat_at": None, **values}
        return self.move(to, by_its_process=by_its_process, message=message[:MAX_MESSAGE], **values)

    def move(self, to: str, *, by_its_process: bool = True, **values: Any) -> bool:
        """Along TRANSITIONS; False when its status, or the process that has it, has changed meanwhile."""
        rows = self._rows().filter(status__in=sources_of(to, self.TRANSITIONS))
        return self._write(rows.filter(claim=self.claim) if by_its_process else rows, status=to, **values)

    @transaction.atomic
    def _write(self, rows: QuerySet[Self], **values: Any) -> bool:
        written = rows.update(**values)
        if written:
            self.refresh_from_db()
            self.publish()
        return bool(written)

    def _rows(self) -> QuerySet[Self]:
        return type(self)._default_manager.filter(pk=self.pk)
