"""Publishing events, and the cursors that pages read them by."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial

from django.db import connection, transaction
from django.db.models import Subquery
from django.utils import timezone

from webapp.lib.columns.storable_text import storable
from webapp.live.broadcast import Published, broadcast
from webapp.live.event_size import fitting
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
