"""Series for the fleet's charts: desktops by phase, reset times, leaks, and how many trajectories errored.

x is milliseconds since the epoch, as the charts of experiments have steps; at most MAX_POINTS per series.
"""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import Max, Sum
from django.utils import timezone

from webapp.fleet.queries.history import MAX_POINTS, MINUTE_S, WINDOWS, ended_since, samples_since, width_s

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
HOUR_S = 3600

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
        "series": _of_hosts(window) | _errored(window),
        "span": [since.timestamp() * 1000, now.timestamp() * 1000],
    }


def _of_hosts(window: timedelta) -> Series:
    """Sums over the hosts; of reset times the worst. Of each host, its last sample in a bucket counts."""
    width = width_s(window)
    buckets = (
        samples_since(timezone.now() - window, width)
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
                "x": [row["bucket"] * width * 1000 for row in points],
                "y": [row[name] for row in points],
            }
    return series


def _errored(window: timedelta) -> Series:
    """Share of the trajectories of a minute (or hour) that errored, over all teams: the fleet's figure."""
    width = MINUTE_S if window <= MOST_MINUTES else HOUR_S
    ended: Counter[int] = Counter()
    errored: Counter[int] = Counter()
    for minute, num_ended, num_errored in ended_since(timezone.now() - window):
        bucket = minute * MINUTE_S // width
        ended[bucket] += num_ended
        errored[bucket] += num_errored
    buckets = [bucket for bucket in ended if ended[bucket]]
    if not buckets:
        return {}
    x = [float(bucket * width * 1000) for bucket in buckets]
    return {"errored/of_all_that_ended": {"x": x, "y": [errored[b] / ended[b] for b in buckets]}}
