"""Reports of joined hosts: each is recorded once, in its host's order, whatever is sent again.

A report and its number are written in one transaction. What cannot be recorded (its trajectory was deleted,
say) is refused, noted and passed: it would hold up everything behind it.
"""

from __future__ import annotations

import hashlib
import logging
from itertools import groupby

from django.db import transaction
from django.db.models import F
from PIL import UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field

from webapp.fleet.models import JoinedHost
from webapp.lib.patience import passes
from webapp.trajectories.frames import store_frame
from webapp.worker_door.rows import row_named, works_for
from webapp.worker_door.trajectories import missing_frames

log = logging.getLogger(__name__)


class SentReport(BaseModel):
    """One report of a batch."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1, lt=2**63)
    name: str
    body: str
    """The arguments as JSON."""
    trajectory: int | None = None
    """That it is about."""


class NamedFrame(BaseModel):
    """A screenshot that reports of a batch name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    team: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(default=0, ge=0)
    """Bytes of its PNG behind the batch; 0 = not sent, because the server had it."""


class Batch(BaseModel):
    """Reports in the order of their numbers. The PNGs of its frames follow it, one behind the other."""

    model_config = ConfigDict(extra="forbid")
    stream: str = Field(min_length=1, max_length=32)
    reports: list[SentReport] = Field(min_length=1)
    frames: list[NamedFrame] = []


class Received(BaseModel):
    """How far the stream has come."""

    number: int
    refused: dict[int, str]
    """Number -> why it could not be recorded."""
    missing: list[NamedFrame] = []
    """Screenshots that are no longer here and have to be sent with the batch: nothing was recorded."""


def receive(host: JoinedHost, batch: Batch, pictures: bytes = b"") -> Received:
    """Record what is new of a batch, its screenshots first.

    Raises errors of database and storage that pass: what was recorded before one stays.
    """
    _store(batch.frames, pictures)
    missing = missing_frames([(frame.team, frame.sha256) for frame in batch.frames if not frame.size])
    if missing:
        named = [NamedFrame(team=team, sha256=sha256) for team, sha256 in missing]
        return Received(number=host.received, refused={}, missing=named)
    refused: dict[int, str] = {}
    for _, together in groupby(batch.reports, key=_transaction_of):
        refused |= _record(host, batch.stream, list(together))
    return Received(number=batch.reports[-1].number, refused=refused)


def _store(frames: list[NamedFrame], pictures: bytes) -> None:
    """A wrong one is passed: the reports that name it will be refused."""
    end = 0
    teams = {team for team in {frame.team for frame in frames if frame.size} if works_for(team)}
    for frame in frames:
        begin, end = end, end + frame.size
        if not frame.size or frame.team not in teams:
            continue
        png = pictures[begin:end]
        try:
            if hashlib.sha256(png).hexdigest() != frame.sha256:
                raise UnidentifiedImageError("its bytes are others")
            store_frame(frame.team, png, sha256=frame.sha256)
        except UnidentifiedImageError as error:
            log.warning("screenshot %s was refused: %s", frame.sha256, error)


def _transaction_of(sent: SentReport) -> tuple[str, int | None]:
    """The same for neighbours that are recorded together: one commit costs as much as a report."""
    row = row_named(sent.name)
    return ("of", sent.trajectory) if row and row.is_of_turns else ("number", sent.number)


def _record(host: JoinedHost, stream: str, together: list[SentReport]) -> dict[int, str]:
    """Record all of them, or, when one cannot be, each by itself. Which were refused, and why."""
    try:
        with transaction.atomic():
            for sent in _count(host, stream, together):
                _call(sent, host)
    except Exception as error:  # the edge to another host: one bad report stops no other
        if passes(error):
            raise
        if len(together) > 1:
            alone = [_record(host, stream, [sent]) for sent in together]
            return {number: why for refused in alone for number, why in refused.items()}
        (sent,) = together
        log.warning("%s: report %s (%s) refused: %s", host.name, sent.number, sent.name, error)
        _count(host, stream, together, is_refused=True)
        return {sent.number: f"{type(error).__name__}: {error}"}
    return {}


def _call(sent: SentReport, host: JoinedHost) -> None:
    row = row_named(sent.name)
    if row is None or not row.is_report:
        raise LookupError(f"no report is called {sent.name}")
    row.require_role(host.roles)
    row.call(sent.body.encode())


def _count(
    host: JoinedHost, stream: str, together: list[SentReport], *, is_refused: bool = False
) -> list[SentReport]:
    """Note that they were received; those that had not been before."""
    rows = JoinedHost.objects.filter(pk=host.pk)
    others = rows.exclude(stream=stream, received__gte=together[0].number)
    newest = together[-1].number
    if others.update(stream=stream, received=newest, num_refused=F("num_refused") + int(is_refused)):
        return together
    received = rows.values_list("received", flat=True).get()
    rest = [sent for sent in together if sent.number > received]
    return _count(host, stream, rest, is_refused=is_refused) if rest else []
