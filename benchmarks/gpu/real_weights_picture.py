"""What SmolLM2 solves while it trains, from the results of the two benchmarks, below docs/images.

real_weights.svg    left: forms by seed; right: copying with replay, alone and in a mix, and the groups
                    that failed as a whole
eight_fields.svg    left: form8's right fields in rollouts, by start; right: held out, while SFT made one

python -m benchmarks.gpu.real_weights_picture
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.training.learning_curves_picture import COLOURS, IMAGES, layout, smooth, svg

TITLES = ("Forms, sampled rollouts", "Copying with replay")
EIGHT_FIELDS = {
    "form8/grpo": "GRPO",
    "form8/grpo, weak start": "GRPO, weak start",
    "form8/rejection, weak start": "rejection, weak start",
    "form8/grpo, demonstrated": "GRPO, demonstrated start",
}


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
    lines = [
        _line(arms[arm]["curve"]["rollout/reward_mean"], name, place)
        for place, (arm, name) in enumerate(EIGHT_FIELDS.items())
    ]
    start = arms["form8/grpo"]["curve"]["sft/success"]
    lines.append(_line(start, "held out, sampled", 5, right=True, width=1))
    titles = ("Right fields of eight, rollouts", "During SFT of GRPO's start")
    (IMAGES / "eight_fields.svg").write_text(svg(lines, layout(titles)))


def _figures(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "gpu" / f"{name}.json").read_text())["figures"]
    return found


def _line(
    curve: Sequence[Sequence[float]], name: str, colour: int, *, right: bool = False, width: int = 3
) -> dict[str, Any]:
    points = smooth(curve, width)
    axes = {"xaxis": "x2", "yaxis": "y2"} if right else {}
    drawn = {"x": [step for step, _ in points], "y": [value for _, value in points]}
    return {"name": name, "mode": "lines", "line": {"color": COLOURS[colour], "width": 2}, **drawn, **axes}


if __name__ == "__main__":
    main()
