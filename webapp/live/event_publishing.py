"""Publishing events, and the cursors that pages read them by."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial

from django.db import connection, transaction
from django.db.models import Subquery
from django.utils import timezone

from webapp.lib.columns.storable_text import storable
from webapp.live.broadcast import Published, broadcast
from webapp.live.models import Stream

STREAM_NAME = re.compile(r"^[a-z]+(\.[A-Za-z0-9-]+)?$")

NEXT_SEQS = """
INSERT INTO live_stream (name, last_seq) VALUES {names}
ON CONFLICT (name) DO UPDATE SET last_seq = live_stream.last_seq + 1
RETURNING name, last_seq
"""
"""Rows are locked in the order of the names."""
NEW_EVENTS = "INSERT INTO live_event (stream, seq, type, payload, created_at) VALUES {rows}"
"""Saving a model takes as long as the rest of a publication."""
BOTH_IN_ONE = f"""
WITH stream AS ({NEXT_SEQS})
INSERT INTO live_event (stream, seq, type, payload, created_at)
SELECT stream.name, stream.last_seq, %s, %s::jsonb, %s FROM stream
RETURNING stream, seq
"""
"""For PostgreSQL, which is asked over a network; SQLite has no INSERT in a WITH."""


logger = logging.getLogger(__name__)

MAX_EVENT_BYTES = 1024
"""Of an event as JSON. Events tell pages what to fetch; what they carry beyond ids is a courtesy."""
MIN_TEXT_BYTES = 160
"""A text that would keep fewer is left out."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def fitting(stream: str, type: str, payload: dict[str, object]) -> dict[str, object]:
    """`payload` cut so that its event takes at most MAX_EVENT_BYTES: long texts first, then other values."""
    envelope = {"stream": stream, "seq": 2**63 - 1, "type": type, "payload": 0}
    limit = MAX_EVENT_BYTES - _num_bytes(envelope)
    fitted = dict(payload)
    while (excess := _num_bytes(fitted) - limit) > 0:
        name = max(fitted, key=lambda name: _num_bytes(fitted[name]))
        value, size = fitted[name], _num_bytes(fitted[name])
        if isinstance(value, str) and size > MIN_TEXT_BYTES:
            fitted[name] = _shortened(value, max(size - excess, MIN_TEXT_BYTES))
        else:
            del fitted[name]
            logger.error("%s on %s: %s does not fit into an event, publish an id instead", type, stream, name)
    return fitted


def _num_bytes(value: object) -> int:
    """Of JSON in ASCII, as browsers get it: a CJK character takes 6, one beyond the BMP 12."""
    return len(json.dumps(value))


def _shortened(text: str, size: int) -> str:
    """The beginning of `text` and an ellipsis in `size` bytes of JSON."""
    room = size - _num_bytes(ELLIPSIS)
    kept = 0
    for character in text:
        room -= _num_bytes(character) - 2
        if room < 0:
            break
        kept += 1
    return text[:kept] + ELLIPSIS


def publish(stream: str, type: str, payload: Mapping[str, object]) -> int:
    """Append an event to `stream` inside the caller's transaction; browsers hear of it on commit.

    Returns its sequence number. Texts that are too long for an event are cut. The row of the
    stream stays locked until the transaction ends, which makes number order equal commit order; so publish
    last, and within one transaction in the order trajectory, experiment, fleet, queue, or two writers can
    deadlock on PostgreSQL.
    """
    (seq,) = publish_to([stream], type, payload)
    return seq


def publish_to(streams: Sequence[str], type: str, payload: Mapping[str, object]) -> list[int]:
    """The same as `publish`, of one event to several streams, in that order; delivered together."""
    assert all(map(STREAM_NAME.match, streams)), f"not the names of streams: {streams!r}"
    fitted = fitting(max(streams, key=len), type, storable(dict(payload)))
    with transaction.atomic(savepoint=False):
        seqs = _append(streams, type, fitted)
        events = [Published(stream, seqs[stream], type, fitted) for stream in streams]
        transaction.on_commit(partial(broadcast, events), robust=True)
    return [event.seq for event in events]


def _append(streams: Sequence[str], type: str, payload: Mapping[str, object]) -> dict[str, int]:
    """Store the event for each of the streams; returns its number in each."""
    names = ", ".join(["(%s, 1)"] * len(streams))
    values = [type, json.dumps(payload), connection.ops.adapt_datetimefield_value(timezone.now())]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(BOTH_IN_ONE.format(names=names), [*streams, *values])
            return dict(cursor.fetchall())
        cursor.execute(NEXT_SEQS.format(names=names), streams)
        seqs: dict[str, int] = dict(cursor.fetchall())
        rows = ", ".join(["(%s, %s, %s, %s, %s)"] * len(streams))
        cursor.execute(
            NEW_EVENTS.format(rows=rows), [value for row in seqs.items() for value in (*row, *values)]
        )
    return seqs


def cursor_of(stream: str) -> Subquery:
    """`last_seq` as an expression, for pages that read it in the same statement as their first rows."""
    return Subquery(Stream.objects.filter(name=stream).values("last_seq")[:1])


def last_seq(stream: str) -> int:
    """The cursor that a page rendered now may subscribe after; 0 for a stream without events.

    Read it before the rows that the page shows: then an event in between is repeated, never missed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_seq FROM live_stream WHERE name = %s", [stream])
        row = cursor.fetchone()
    return int(row[0]) if row else 0
