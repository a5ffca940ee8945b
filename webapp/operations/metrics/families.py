"""Short ways to make Prometheus' metric families."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "deskhand_"
Rows = Mapping[Any, float]
"""Values of the labels, as a tuple in their order -> the figure."""


def gauge(name: str, help_text: str, rows: Rows | float, *labels: str) -> Metric:
    """A figure that goes up and down."""
    return _filled(GaugeMetricFamily(PREFIX + name, help_text, labels=labels), rows)


def counter(name: str, help_text: str, rows: Rows | float, *labels: str) -> Metric:
    """A figure that only rises until what counts it starts again; its name gets `_total`."""
    return _filled(CounterMetricFamily(PREFIX + name, help_text, labels=labels), rows)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows | float) -> Metric:
    for values, figure in rows.items() if isinstance(rows, Mapping) else [((), rows)]:
        family.add_metric(values, figure)
    return family
