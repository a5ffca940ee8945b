"""A frozen chart as SVG, for pages that open without a script: lines, held-out points, axes, legend."""

from __future__ import annotations

import math
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 8, 22
COLOURS = ("accent", "good", "warning", "info", "bad", "gold", "neutral")
"""As in static/js/charts/traces.js."""
NUM_TICKS = 4


def chart_svg(chart: dict[str, Any]) -> SafeString:
    """The chart's drawing and its legend. `chart` is what `freeze.frozen` keeps."""
    lines = [*chart["lines"], *_held_out(chart["evaluations"])]
    xs = [x for line in lines for x in line["x"]]
    ys = [y for line in lines for y in line["y"] if y is not None]
    if not ys:
        return format_html('<p class="sub">No finite numbers.</p>')
    across, up = (min(xs), max(max(xs), min(xs) + 1)), _range(chart["kind"], ys)
    is_log = chart["kind"] == "log" and min(ys) > 0 and max(ys) > 10 * min(ys)
    if is_log:
        up = (math.log10(min(ys)), math.log10(max(ys)))

    def place(x: float, y: float) -> tuple[float, float]:
        height = math.log10(y) if is_log else y
        return (
            round(LEFT + (x - across[0]) / (across[1] - across[0]) * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - (height - up[0]) / (up[1] - up[0]) * (HEIGHT - TOP - BOTTOM), 1),
        )

    parts = [_axis_y(up, is_log, chart["kind"]), _axis_x(across)]
    for number, line in enumerate(lines):
        points = [place(x, y) for x, y in zip(line["x"], line["y"], strict=True) if y is not None]
        parts.append(_marks(points, COLOURS[number % len(COLOURS)], is_line=not line.get("is_points")))
    drawn = format_html_join("", "{}", ((part,) for part in parts))
    names = ((COLOURS[number % len(COLOURS)], line["name"]) for number, line in enumerate(lines))
    legend = format_html_join("", '<span style="--tone:var(--dh-{})">{}</span>', names)
    return format_html(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg><p class="copy-legend">{}</p>',
        WIDTH, HEIGHT, f"{chart['title']} by step", drawn, legend,
    )  # fmt: skip


def _held_out(evaluations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Success on held-out tasks as points, sampled and greedy apart."""
    found = []
    for name, is_greedy in (("held-out, sampled", False), ("held-out, greedy", True)):
        rows = [one for one in evaluations if (one["temperature"] == 0) == is_greedy]
        if rows:
            steps, values = [one["step"] for one in rows], [one["success"] for one in rows]
            found.append({"name": name, "x": steps, "y": values, "is_points": True})
    return found


def _range(kind: str, values: list[float]) -> tuple[float, float]:
    """Lowest and highest value of the axis: shares have all of 0 to 1, a constant lies in the middle."""
    if kind in ("share", "success") and min(values) >= 0 and max(values) <= 1:
        return 0.0, 1.0
    low, high = min(values), max(values)
    around = abs(high) or 1.0
    return (low, high) if high - low > 1e-4 * around else (low - around, high + around)


def _axis_y(up: tuple[float, float], is_log: bool, kind: str) -> SafeString:
    rows = []
    for tick in range(NUM_TICKS + 1):
        value = up[0] + (up[1] - up[0]) * tick / NUM_TICKS
        height = round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tick / NUM_TICKS, 1)
        shown = 10**value if is_log else value
        rows.append((height, height, height + 3, f"{shown:.0%}" if kind == "share" else f"{shown:.3g}"))
    line = f'<line class="copy-grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{{}}" y2="{{}}"/>'
    return format_html_join("", line + f'<text x="{LEFT - 5}" y="{{}}" text-anchor="end">{{}}</text>', rows)


def _axis_x(across: tuple[float, float]) -> SafeString:
    rows = [
        (LEFT, "start", f"{across[0]:g}"),
        (WIDTH - RIGHT, "end", f"{across[1]:g}"),
        ((LEFT + WIDTH - RIGHT) // 2, "middle", "step"),
    ]
    return format_html_join("", f'<text x="{{}}" y="{HEIGHT - 6}" text-anchor="{{}}">{{}}</text>', rows)


def _marks(points: list[tuple[float, float]], colour: str, *, is_line: bool) -> SafeString:
    if is_line:
        path = " ".join(f"{x},{y}" for x, y in points)
        return format_html('<polyline style="stroke:var(--dh-{})" points="{}"/>', colour, path)
    rows = ((x, y, colour) for x, y in points)
    return format_html_join("", '<circle cx="{}" cy="{}" r="4" style="fill:var(--dh-{})"/>', rows)
