"""Series for the fleet's charts: desktops by phase, reset times, leaks, and how many trajectories errored.

x is milliseconds since the epoch, as the charts of experiments have steps; at most MAX_POINTS per series.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import TruncHour, TruncMinute
from django.utils import timezone

from webapp.fleet.models import Desktop, HostSample
from webapp.lib.database_times import TimeBucket

WINDOWS = {
    "1": timedelta(hours=1),
    "6": timedelta(hours=6),
    "24": timedelta(hours=24),
    "72": timedelta(days=3),
}
"""Hours as the URL has them."""
MAX_POINTS = 360
COLUMNS: dict[str, tuple[str, type[Sum | Max]]] = {
    "desktops_leased": ("leased", Sum),
    "desktops_ready": ("ready", Sum),
    "desktops_booting": ("booting", Sum),
    "reset_p50": ("reset_p50_s", Max),
    "reset_p99": ("reset_p99_s", Max),
    "trouble_dead": ("dead", Sum),
    "trouble_quarantined": ("quarantined", Sum),
    "trouble_leaked": ("leaks", Sum),
}
"""Series with "_" for its "/" -> column, and how the hosts of a bucket are put together."""
MOST_MINUTES = timedelta(minutes=MAX_POINTS)

PANELS = [
    {"title": "Desktops", "names": ["desktops/leased", "desktops/ready", "desktops/booting"], "unit": ""},
    {"title": "Reset time", "names": ["reset/p50", "reset/p99"], "unit": "s"},
    {"title": "Errored trajectories", "names": ["errored/of_all_that_ended"], "kind": "share", "unit": ""},
    {
        "title": "Dead, quarantined, leaked",
        "names": ["trouble/dead", "trouble/quarantined", "trouble/leaked"],
        "unit": "",
    },
]
Series = dict[str, dict[str, list[float]]]


def charts(hours: str) -> dict[str, Any]:
    """What static/js/charts/history_charts.js shows; three queries at most."""
    now = timezone.now()
    window = WINDOWS.get(hours, WINDOWS["1"])
    since = now - window
    panels = [{"kind": "line", "limit": None, **panel} for panel in PANELS]
    return {
        "panels": panels,
        "evaluations": [],
        "from_step": 0,
        "series": _of_hosts(since, int(window.total_seconds()) // MAX_POINTS) | _errored(since),
        "span": [since.timestamp() * 1000, now.timestamp() * 1000],
    }


def _of_hosts(since: datetime, width_s: int) -> Series:
    """Sums over the hosts; of reset times the worst. Of each host, its last sample in a bucket counts."""
    rows = HostSample.objects.filter(at__gte=since).annotate(bucket=TimeBucket("at", width_s))
    last = rows.values("bucket", "host_id").order_by().annotate(last=Max("id")).values("last")
    buckets = (
        HostSample.objects.filter(id__in=last)
        .annotate(bucket=TimeBucket("at", width_s))
        .values("bucket")
        .order_by("bucket")
        .annotate(**{name: combine(column) for name, (column, combine) in COLUMNS.items()})
    )
    found: list[Any] = list(buckets)
    series: Series = {}
    for name in COLUMNS:
        # A reset time of 0 means: nothing was reset in that minute.
        points = [row for row in found if row[name] or not name.startswith("reset_")]
        if points:
            series[name.replace("_", "/", 1)] = {
                "x": [row["bucket"] * width_s * 1000 for row in points],
                "y": [row[name] for row in points],
            }
    return series


def _errored(since: datetime) -> Series:
    """Share of the trajectories of a minute (or hour) that errored, over all teams: the fleet's figure."""
    model: Any = Desktop._meta.get_field("trajectory").related_model
    rows = model.objects.filter(ended_at__gte=since).exclude(status="cancelled")
    truncate = TruncMinute if timezone.now() - since <= MOST_MINUTES else TruncHour
    counted = rows.annotate(bucket=truncate("ended_at", tzinfo=UTC)).values("bucket").order_by("bucket")
    found = list(counted.annotate(ended=Count("pk"), errored=Count("pk", filter=Q(status="errored"))))
    if not found:
        return {}
    x = [row["bucket"].timestamp() * 1000 for row in found]
    return {"errored/of_all_that_ended": {"x": x, "y": [row["errored"] / row["ended"] for row in found]}}
