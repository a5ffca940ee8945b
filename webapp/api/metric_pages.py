"""Metric points of an experiment in pages: nothing is cut without a cursor that leads to the rest."""

import math
from collections import defaultdict
from typing import Any

from django.db.models import Q, QuerySet

from webapp.experiments.models import MetricPoint
from webapp.lib.request_values import BadValue, whole_number

MAX_STEP = 2**31 - 1


def metrics_page(rows: QuerySet[MetricPoint], after: str, limit: int) -> dict[str, Any]:
    """{"series": name -> {"steps", "values"}, "next": cursor or None}; series by name, each by step.

    A series that a page ends in goes on in the next one. Raises BadValue for a cursor that is none.
    """
    if after:
        rows = rows.filter(_beyond(after))
    columns = ("name", "step", "value")
    points = list(rows.order_by("name", "step").values_list(*columns)[: limit + 1])
    series: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {"steps": [], "values": []})
    for name, step, value in points[:limit]:
        series[name]["steps"].append(step)
        series[name]["values"].append(value if math.isfinite(value) else None)
    last = points[limit - 1] if len(points) > limit else None
    return {"series": series, "next": f"{last[1]}:{last[0]}" if last else None}


def _beyond(cursor: str) -> Q:
    """The points behind "STEP:NAME"."""
    step, colon, name = cursor.partition(":")
    if not colon:
        raise BadValue("after", "not a cursor; take `next` of the page before")
    number = whole_number(step, "after", high=MAX_STEP)
    # The first condition is implied; it is what lets an index scan start in the right place.
    return Q(name__gte=name) & (Q(name__gt=name) | Q(step__gt=number))
