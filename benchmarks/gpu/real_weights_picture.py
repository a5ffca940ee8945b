"""docs/images/real_weights.svg: what SmolLM2 solves while it trains, from the results of the two benchmarks.

Left: forms by seed. Right: copying with replay, alone and in a mix, and the groups that failed as a whole.

    python -m benchmarks.gpu.real_weights_picture
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.training.learning_curves_picture import COLOURS, IMAGES, layout, smooth, svg

TITLES = ("Forms, sampled rollouts", "Copying with replay")


def main() -> None:
    runs = _figures("smoldesk")["runs"]
    lines = [
        _line(run["curves"]["success/form"], f"form, {name.rpartition('/')[2]}", place)
        for place, (name, run) in enumerate(sorted(runs.items()))
        if name.startswith("demonstrated/grpo")
    ]
    arms = {run["arm"]: run for run in _figures("replay_matters")["runs"]}
    copied = arms["copy/replay"]
    groups = copied["budget"]["groups"]
    failed = [(step, count / groups) for step, count in copied["curve"]["replay/failed_groups"]]
    lines += [
        _line(copied["curve"]["success/copy"], "copy alone, rollouts", 5, right=True),
        _line(failed, "copy alone, groups that failed", 7, right=True),
        _line(arms["mix/replay"]["curve"]["success/copy"], "copy in a mix, rollouts", 3, right=True),
    ]
    (IMAGES / "real_weights.svg").write_text(svg(lines, layout(TITLES)))


def _figures(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "gpu" / f"{name}.json").read_text())["figures"]
    return found


def _line(curve: Sequence[Sequence[float]], name: str, colour: int, *, right: bool = False) -> dict[str, Any]:
    points = smooth(curve, 3)
    axes = {"xaxis": "x2", "yaxis": "y2"} if right else {}
    drawn = {"x": [step for step, _ in points], "y": [value for _, value in points]}
    return {"name": name, "mode": "lines", "line": {"color": COLOURS[colour], "width": 2}, **drawn, **axes}


if __name__ == "__main__":
    main()
