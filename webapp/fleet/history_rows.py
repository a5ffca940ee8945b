"""What the history charts are made of, written by mirrors' ticks; three days take as many rows as an hour.

Each window of time has samples of its own width, MAX_POINTS of each host. Ended trajectories are counted by
the minute, once nothing can end in it any more; what is not counted yet is read from their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from webapp.fleet.models import Desktop, EndedMinute, Host, HostSample
from webapp.lib.database_times import TimeBucket

WINDOWS = {
    "1": timedelta(hours=1),
    "6": timedelta(hours=6),
    "24": timedelta(hours=24),
    "72": timedelta(days=3),
}
"""Hours as the URL has them."""
MAX_POINTS = 360
MINUTE_S = 60
LATE_S = 60
"""No transaction that ends a trajectory takes longer."""
CATCH_UP_MINUTES = 360
"""Counted by one tick, so that none takes long after an upgrade or a long stop."""


def width_s(window: timedelta) -> int:
    """Of its samples."""
    return int(window.total_seconds()) // MAX_POINTS


def record_sample(host: Host, at: datetime, **values: Any) -> None:
    """In the samples of every width; the latest look within a width counts."""
    at_s = int(at.timestamp())
    widths = [width_s(window) for window in WINDOWS.values()]
    HostSample.objects.bulk_create(
        (HostSample(host=host, width_s=width, bucket=at_s // width, **values) for width in widths),
        update_conflicts=True,
        unique_fields=["width_s", "bucket", "host"],
        update_fields=list(values),
    )


def samples_since(since: datetime, width: int) -> QuerySet[HostSample]:
    """Those of one width, of all hosts."""
    return HostSample.objects.filter(width_s=width, bucket__gte=int(since.timestamp()) // width)


def count_ended() -> None:
    """Keep the counts of the minutes since the last one that was counted, CATCH_UP_MINUTES at most."""
    now_s = int(timezone.now().timestamp())
    oldest = (now_s - int(max(WINDOWS.values()).total_seconds())) // MINUTE_S
    last = EndedMinute.objects.aggregate(last=Max("minute"))["last"]
    first = oldest if last is None else max(last + 1, oldest)
    end = min((now_s - LATE_S) // MINUTE_S, first + CATCH_UP_MINUTES)
    if end <= first:
        return
    # The last minute is kept even when nothing ended in it: so far it has been counted.
    counts = {end - 1: EndedMinute(minute=end - 1, num_ended=0, num_errored=0)}
    counts |= {row.minute: row for row in _ended_from(first, end)}
    # Another host's mirror may have been first; in one order, so that two never wait for each other.
    rows = sorted(counts.values(), key=lambda row: row.minute)
    EndedMinute.objects.bulk_create(rows, ignore_conflicts=True)


def ended_since(since: datetime) -> list[tuple[int, int, int]]:
    """(minute, ended, errored) in order; minutes in which nothing ended are left out, or say so."""
    first = int(since.timestamp()) // MINUTE_S
    columns = ("minute", "num_ended", "num_errored")
    kept = list(EndedMinute.objects.filter(minute__gte=first).order_by("minute").values_list(*columns))
    fresh = _ended_from(kept[-1][0] + 1 if kept else first)
    return kept + [(row.minute, row.num_ended, row.num_errored) for row in fresh]


def forget_history() -> None:
    """Drop what no chart reaches."""
    now = timezone.now()
    for window in WINDOWS.values():
        width = width_s(window)
        oldest = int((now - window).timestamp()) // width
        HostSample.objects.filter(width_s=width, bucket__lt=oldest).delete()
    oldest = int((now - max(WINDOWS.values())).timestamp()) // MINUTE_S
    EndedMinute.objects.filter(minute__lt=oldest).delete()


def _ended_from(first: int, end: int | None = None) -> Iterator[EndedMinute]:
    """Not stored; counted from the trajectories' rows, of minutes from `first` on and before `end`."""
    model: Any = Desktop._meta.get_field("trajectory").related_model
    rows = model.objects.filter(ended_at__gte=_start_of(first)).exclude(status="cancelled")
    if end is not None:
        rows = rows.filter(ended_at__lt=_start_of(end))
    minutes = rows.annotate(minute=TimeBucket("ended_at", MINUTE_S)).values("minute").order_by("minute")
    counted = minutes.annotate(ended=Count("pk"), errored=Count("pk", filter=Q(status="errored")))
    for row in counted:
        yield EndedMinute(minute=row["minute"], num_ended=row["ended"], num_errored=row["errored"])


def _start_of(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * MINUTE_S, tz=UTC)
