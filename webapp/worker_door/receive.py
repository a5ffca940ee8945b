"""Reports of joined hosts: each is recorded once, in its host's order, whatever is sent again.

A report and its number are written in one transaction. What cannot be recorded (its trajectory was deleted,
say) is refused, noted and passed: it would hold up everything behind it.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import F
from pydantic import BaseModel, ConfigDict, Field

from webapp.fleet.models import JoinedHost
from webapp.lib.patience import passes
from webapp.worker_door.rows import row_named
from webapp.worker_door.trajectories import missing_frames

log = logging.getLogger(__name__)


class SentReport(BaseModel):
    """One report of a batch."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1)
    name: str
    body: str
    """The arguments as JSON."""


class Batch(BaseModel):
    """Reports in the order of their numbers."""

    model_config = ConfigDict(extra="forbid")
    stream: str = Field(min_length=1, max_length=32)
    reports: list[SentReport]
    frames: dict[int, list[str]] = {}
    """Team -> screenshots that have to be here before any of the reports is recorded."""


class Received(BaseModel):
    """How far the stream has come."""

    number: int
    refused: dict[int, str]
    """Number -> why it could not be recorded."""
    missing: dict[int, list[str]] = {}
    """Screenshots that have to be uploaded first: nothing was recorded."""


def receive(host: JoinedHost, batch: Batch) -> Received:
    """Record what is new of a batch. Raises database errors that pass: what was recorded before one stays."""
    missing = {team: found for team, named in batch.frames.items() if (found := missing_frames(team, named))}
    if missing:
        return Received(number=host.received, refused={}, missing=missing)
    refused: dict[int, str] = {}
    for sent in batch.reports:
        try:
            _record(host, batch.stream, sent)
        except Exception as error:  # the edge to another host: one bad report stops no other
            if passes(error):
                raise
            log.warning("%s: report %s (%s) refused: %s", host.name, sent.number, sent.name, error)
            refused[sent.number] = f"{type(error).__name__}: {error}"
            _count(host, batch.stream, sent.number, is_refused=True)
    host.refresh_from_db()
    return Received(number=host.received, refused=refused)


def _record(host: JoinedHost, stream: str, sent: SentReport) -> None:
    row = row_named(sent.name)
    if row is None or not row.is_report:
        raise LookupError(f"no report is called {sent.name}")
    with transaction.atomic():
        if _count(host, stream, sent.number):
            row.call(sent.body.encode())


def _count(host: JoinedHost, stream: str, number: int, *, is_refused: bool = False) -> bool:
    """Note that the report was received; False when it had been before."""
    others = JoinedHost.objects.filter(pk=host.pk).exclude(stream=stream, received__gte=number)
    return bool(others.update(stream=stream, received=number, num_refused=F("num_refused") + int(is_refused)))
