"""Verdicts of runs that were made bad: is the sentence right, and does its remedy rescue the clone?

Each lane trains First desk's start on real desktops with one setting changed, and is evaluated before and
after. Then Chromium opens its page, reads the verdict, presses "Clone with this remedy" and launches what the
form holds, unchanged. A run without a change is the healthy one.

Bar, per lane: the verdict's outcome and its remedy's setting are the expected ones; the clone's greedy
success is at most 5 points below the healthy run's. The healthy run's verdict is not a bad one.

    python -m benchmarks.training.verdicts [--lanes fast_rate] [--steps 6] [--resume]
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import print_table
from benchmarks.training.remedies import clone_with_remedy
from testing.experiment_runs import describe, follow, launch, settings
from testing.private_installation import Instance

HEALTHY = "healthy"
LANES: dict[str, tuple[dict[str, object], set[str], str]] = {
    HEALTHY: ({}, {"learned", "solved", "flat", "sharpened"}, ""),
    "fast_rate": ({"optimiser.learning_rate": 0.05}, {"collapsed"}, "optimiser.learning_rate"),
    "lost_families": (
        {"tasks.families": [], "optimiser.learning_rate": 0.001},
        {"flat", "learned", "sharpened", "worse"},
        "tasks.families",
    ),
}
"""Lane -> what is set wrong, the outcomes that would be right, and the setting that the remedy changes."""
WITHIN = 0.05
LIMIT_S = 1500
HEADER = ("lane", "set wrong", "verdict", "remedy", "clone greedy", "healthy greedy", "bar")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lanes", nargs="+", choices=LANES, default=list(LANES))
    arguments.add_argument("--steps", type=int, default=6)
    add_resume(arguments)
    options = arguments.parse_args()
    budget = {"steps": options.steps}
    runs = FinishedRuns(name="verdicts", budget=budget, resume=options.resume)
    lanes = [HEALTHY, *(lane for lane in options.lanes if lane != HEALTHY)]
    rows = [runs.once({"lane": lane}, partial(measure, lane, **budget)) for lane in lanes]
    reached = rows[0]["first"]["greedy"]
    print_table(HEADER, [row_of(row, reached) for row in rows])
    return runs.finish(passed=all(is_right(row, reached) for row in rows), healthy_greedy=reached)


def measure(lane: str, *, steps: int) -> dict[str, Any]:
    """The run with its verdict, and its clone where a remedy is offered."""
    wrong, _, _ = LANES[lane]
    with Instance() as deskhand:
        values = {"algorithm.num_steps": steps, **wrong}
        number = launch(deskhand, "--preset", "first-desk", *settings(values))
        follow(deskhand, number, LIMIT_S)
        first, clone = figures_of(deskhand, number), None
        if lane != HEALTHY and first["remedy"]:
            cloned, _ = clone_with_remedy(deskhand, f"/experiments/{number}/", "#verdict")
            follow(deskhand, cloned, LIMIT_S)
            clone = figures_of(deskhand, cloned)
    ended = [run["status"] for run in (first, clone) if run]
    status = "finished" if set(ended) == {"finished"} else "failed"
    return {"wrong": wrong, "first": first, "clone": clone, "status": status}


def figures_of(deskhand: Instance, number: int) -> dict[str, Any]:
    """Status, verdict, greedy success at the end, and the alarms that stand."""
    described = describe(deskhand, number)
    greedy = [one for one in described["evaluations"] if one["temperature"] == 0]
    verdict = described["verdict"]
    return {
        "status": described["status"],
        "outcome": verdict["outcome"],
        "text": verdict["text"],
        "remedy": verdict["remedy"],
        "greedy": greedy[-1]["solved"] if greedy else None,
        "n": greedy[-1]["num_samples"] if greedy else 0,
        "alarms": sorted(alarm["name"] for alarm in described["alarms"]),
    }


def is_right(row: dict[str, Any], healthy: float) -> bool:
    """The bar of one lane."""
    _, outcomes, knob = LANES[row["lane"]]
    if row["first"]["outcome"] not in outcomes:
        return False
    if not knob:
        return True
    clone = row["clone"]
    is_rescued = clone is not None and clone["greedy"] >= healthy - WITHIN
    return list(row["first"]["remedy"]) == [knob] and is_rescued


def row_of(row: dict[str, Any], healthy: float) -> tuple[object, ...]:
    wrong = ", ".join(f"{name} {value}" for name, value in row["wrong"].items())
    remedy = ", ".join(f"{name} {value}" for name, value in row["first"]["remedy"].items())
    reached = row["clone"]["greedy"] if row["clone"] else ""
    return (row["lane"], wrong, row["first"]["outcome"], remedy, reached, healthy, is_right(row, healthy))


if __name__ == "__main__":
    sys.exit(main())
