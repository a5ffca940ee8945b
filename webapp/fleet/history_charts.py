"""Series for the fleet's charts: desktops by phase, reset times, leaks, and how many trajectories errored.

x is milliseconds since the epoch, as the charts of experiments have steps; at most MAX_POINTS per series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.db.models.functions import TruncHour, TruncMinute
from django.utils import timezone

from webapp.fleet.models import Desktop, HostSample

WINDOWS = {
    "1": timedelta(hours=1),
    "6": timedelta(hours=6),
    "24": timedelta(hours=24),
    "72": timedelta(days=3),
}
"""Hours as the URL has them."""
MAX_POINTS = 360
SHORTEST_BUCKET_S = 10.0
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
    since = now - WINDOWS.get(hours, WINDOWS["1"])
    panels = [{"kind": "line", "limit": None, **panel} for panel in PANELS]
    return {
        "panels": panels,
        "evaluations": [],
        "from_step": 0,
        "series": _of_hosts(since) | _errored(since),
        "span": [since.timestamp() * 1000, now.timestamp() * 1000],
    }


def _of_hosts(since: datetime) -> Series:
    """Sums over the hosts; of reset times the worst."""
    width_s = max(SHORTEST_BUCKET_S, (timezone.now() - since).total_seconds() / MAX_POINTS)
    columns: dict[str, tuple[str, Callable[[Iterable[float]], float]]] = {
        "desktops/leased": ("leased", sum),
        "desktops/ready": ("ready", sum),
        "desktops/booting": ("booting", sum),
        "reset/p50": ("reset_p50_s", max),
        "reset/p99": ("reset_p99_s", max),
        "trouble/dead": ("dead", sum),
        "trouble/quarantined": ("quarantined", sum),
        "trouble/leaked": ("leaks", sum),
    }
    # bucket -> host -> its last sample in the bucket
    buckets: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    names = [column for column, _ in columns.values()]
    for row in HostSample.objects.filter(at__gte=since).order_by("at").values("host_id", "at", *names):
        buckets[int(row["at"].timestamp() // width_s)][row["host_id"]] = row
    series: Series = {}
    for name, (column, combine) in columns.items():
        points = [(key, [row[column] for row in rows.values()]) for key, rows in sorted(buckets.items())]
        if name.startswith("reset/"):  # 0 means: nothing was reset in that minute
            points = [(key, values) for key, values in points if any(values)]
        if points:
            series[name] = {
                "x": [key * width_s * 1000 for key, _ in points],
                "y": [combine(values) for _, values in points],
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
