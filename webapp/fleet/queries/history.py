"""What the history charts are made of, read."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from webapp.fleet.models import Desktop, EndedMinute, HostSample
from webapp.lib.time_sql_functions import TimeBucket

WINDOWS = {
    "1": timedelta(hours=1),
    "6": timedelta(hours=6),
    "24": timedelta(hours=24),
    "72": timedelta(days=3),
}
"""Hours as the URL has them."""
MAX_POINTS = 360
MINUTE_S = 60


def width_s(window: timedelta) -> int:
    """Of its samples."""
    return int(window.total_seconds()) // MAX_POINTS


def samples_since(since: datetime, width: int) -> QuerySet[HostSample]:
    """Those of one width, of all hosts."""
    return HostSample.objects.filter(width_s=width, bucket__gte=int(since.timestamp()) // width)


def ended_since(since: datetime) -> list[tuple[int, int, int]]:
    """(minute, ended, errored) in order; minutes in which nothing ended are left out, or say so."""
    first = int(since.timestamp()) // MINUTE_S
    columns = ("minute", "num_ended", "num_errored")
    kept = list(EndedMinute.objects.filter(minute__gte=first).order_by("minute").values_list(*columns))
    fresh = ended_minutes(kept[-1][0] + 1 if kept else first)
    return kept + [(row.minute, row.num_ended, row.num_errored) for row in fresh]


def ended_minutes(first: int, end: int | None = None) -> Iterator[EndedMinute]:
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
