"""Filters for what changed: percentage points with their unit, their chance, and their colour."""

from typing import Any

from django import template

from training.statistics.paired_statistics import SIGNIFICANT_P
from webapp.ui.templatetags.deskhand import MISSING, with_sign

register = template.Library()


@register.filter
def points(value: float | None) -> str:
    """Percentage points with their sign, none at 0: "+4", "−11"."""
    return with_sign(value, 0)


@register.filter
def points_text(value: float | None) -> str:
    """As `points`, with the unit: "+4 points", "−1 point"."""
    text = points(value)
    return text if value in MISSING else f"{text} point{'' if text.lstrip('+−') == '1' else 's'}"


@register.filter
def as_points_text(fraction: float | None) -> str:
    """A difference of shares, as `points_text`."""
    return points_text(None if fraction is None else fraction * 100)


@register.filter
def as_points(fraction: float | None) -> str:
    """A difference of shares in percentage points, as `points`."""
    return points(None if fraction is None else fraction * 100)


@register.filter
def points_interval(bounded: Any) -> str:
    """From its low to its high difference of shares: "0 to +67 points"."""
    return f"{as_points(bounded.low)} to {as_points_text(bounded.high)}"


@register.filter
def p_value(p: float) -> str:
    """With two digits that count: "p = 0.02", "p = 0.31", "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"


@register.filter
def change_tone(points: float | None, p: float | None) -> str:
    """good or bad for a change that is more than chance by its paired test, else neutral."""
    if points in MISSING or p in MISSING or p > SIGNIFICANT_P:
        return "neutral"
    return "good" if points > 0 else "bad" if points < 0 else "neutral"
