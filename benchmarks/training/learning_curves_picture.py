"""The curves of arms as one SVG in docs/images: drawn by Plotly in headless Chromium, as on the pages.

Left: success of the rollouts that trained, mean over the seeds and over `SMOOTHED` steps. Right: held-out
success with greedy choices, mean over the seeds; the bars reach from the worst seed to the best.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

REPOSITORY = Path(__file__).resolve().parents[2]
PLOTLY = REPOSITORY / "node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js"
IMAGES = REPOSITORY / "docs" / "images"
COLOURS = ("#0ca678", "#d6336c", "#f59f00", "#4263eb", "#7048e8", "#1098ad", "#74b816", "#495057")
SMOOTHED = 5
TITLES = ("Rollouts, sampled", "Held-out tasks, greedy")
SIZE = {"width": 960, "height": 420}
TO_SVG = """async ([traces, layout]) => {
  const place = document.createElement("div");
  document.body.append(place);
  await Plotly.newPlot(place, traces, layout);
  return await Plotly.toImage(place, { format: "svg", width: layout.width, height: layout.height });
}"""
Point = tuple[float, float, float, float]
"""Step, mean, lowest, highest."""


def draw(runs: Sequence[dict[str, Any]], name: str, folder: Path = IMAGES) -> None:
    """Write docs/images/NAME.svg of the runs that finished, by their "arm"; nothing without any."""
    arms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if run["status"] == "finished":
            arms[run["arm"]].append(run)
    if not arms:
        return
    traces = [trace for place, arm in enumerate(arms) for trace in _traces(arm, arms[arm], COLOURS[place])]
    (folder / f"{name}.svg").write_text(svg(traces, layout(TITLES)))


def svg(traces: Sequence[dict[str, Any]], layout: dict[str, Any]) -> str:
    """What Plotly makes of them."""
    from playwright.sync_api import sync_playwright  # hosts that only measure have none

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.add_script_tag(path=PLOTLY)
            address = page.evaluate(TO_SVG, [json.loads(json.dumps(traces)), layout])
        finally:
            browser.close()
    return unquote(address.partition(",")[2])


def over_seeds(curves: Iterable[Sequence[Sequence[float]]]) -> list[Point]:
    """[seed][point](step, value) -> per step the mean, lowest and highest value of the seeds that have it."""
    values: dict[float, list[float]] = defaultdict(list)
    for curve in curves:
        for step, value in curve:
            values[step].append(value)
    return [(step, sum(some) / len(some), min(some), max(some)) for step, some in sorted(values.items())]


def smooth(curve: Sequence[Sequence[float]], width: int = SMOOTHED) -> list[tuple[float, float]]:
    """Each value the mean of itself and up to `width` - 1 before it."""
    recent = [
        [value for _, value in curve[max(0, place - width + 1) : place + 1]] for place in range(len(curve))
    ]
    return [(point[0], sum(some) / len(some)) for point, some in zip(curve, recent, strict=True)]


def _traces(arm: str, runs: Sequence[dict[str, Any]], colour: str) -> list[dict[str, Any]]:
    rollouts = over_seeds(smooth(run["rollout_curve"]) for run in runs)
    greedy = over_seeds(run["greedy_curve"] for run in runs)
    label = f"{arm.replace('_', ' ')} ({len(runs)} seed{'s' if len(runs) > 1 else ''})"
    common = {"name": label, "legendgroup": arm, "line": {"color": colour, "width": 2}}
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [high - mean for _, mean, _, high in greedy],
        "arrayminus": [mean - low for _, mean, low, _ in greedy],
        "color": colour,
        "thickness": 1,
    }
    return [
        {**common, "mode": "lines", **_points(rollouts)},
        {
            **common, "mode": "lines+markers", **_points(greedy), "error_y": spread,
            "xaxis": "x2", "yaxis": "y2", "showlegend": False,
        },
    ]  # fmt: skip


def _points(points: Sequence[Point]) -> dict[str, list[float]]:
    return {"x": [point[0] for point in points], "y": [point[1] for point in points]}


def layout(titles: Sequence[str]) -> dict[str, Any]:
    """Two charts of shares beside each other."""
    share = {"range": [0, 1.02], "tickformat": ".0%", "gridcolor": "#e9ecef"}
    notes = [
        {"text": title, "xref": "paper", "yref": "paper", "x": x, "y": 1.1, "showarrow": False}
        for title, x in zip(titles, (0.19, 0.81), strict=True)
    ]
    return {
        **SIZE,
        "xaxis": {"domain": [0, 0.46], "title": {"text": "step"}},
        "xaxis2": {"domain": [0.54, 1], "title": {"text": "step"}, "anchor": "y2"},
        "yaxis": share,
        "yaxis2": {**share, "anchor": "x2"},
        "annotations": notes,
        "legend": {"orientation": "h", "y": -0.2},
        "margin": {"l": 50, "r": 20, "t": 50, "b": 60},
        "font": {"family": "sans-serif", "size": 13},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
    }
