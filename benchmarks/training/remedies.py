"""Remedies of alarms, tried: does the clone that a page fills in do without the alarm?

Each lane trains First desk's start on real desktops with knobs that bring a guard to fire. Then Chromium
opens the alarm's page, presses "Clone with this remedy" and launches what the form holds, unchanged; the
clone trains for as many steps. Nothing is evaluated. Six healthy runs of three seeds follow.

Bar: at least 10 of 11 remedies. The alarm fired in the first run; in the clone it never did. At the end of
the healthy runs no alarm stands. Rows of lanes that a call leaves out stay, each with its commit and date.

    python -m benchmarks.training.remedies [--lanes parse_collapse] [--steps 3] [--groups 3] [--resume]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.finished_runs import FinishedRuns, Run, add_resume, label
from benchmarks.report import RESULTS, print_table
from testing.browser.chromium import chromium_page, sign_in
from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance

NEVER_SEEN = ["rename", "replace"]
"""Families of which the shipped start solves no task."""


@dataclass(frozen=True, slots=True)
class Lane:
    """How a guard is brought to fire."""

    series: str
    """It tells of the guard."""
    wrong: dict[str, object]
    """What is set wrong, or how sensitive the guard is made."""
    num_steps: int = 0
    """Of this lane; 0 = as many as the others."""


LANES = {
    "all_zero_rewards": Lane("rollout/success", {"tasks.families": NEVER_SEEN}),
    "entropy_collapse": Lane(
        "loss/entropy",
        {
            "algorithm.groups_per_step": 6,
            "optimiser.learning_rate": 0.006,
            "alarms.entropy_drop": 0.65,
        },
        num_steps=12,
    ),
    "grad_norm_explosion": Lane(
        "optimiser/grad_norm",
        {
            "algorithm.groups_per_step": 6,
            "optimiser.learning_rate": 0.006,
            "optimiser.warmup_steps": 10,
            "alarms.grad_norm_factor": 3,
        },
        num_steps=12,
    ),
    "logprob_drift": Lane("sync/drift", {"model.dtype": "bfloat16", "alarms.logprob_drift": 1e-5}),
    "logprob_gap": Lane(
        "policy/logprob_gap", {"algorithm.max_staleness": 1, "alarms.logprob_gap": 1e-4}, num_steps=5
    ),
    "no_update": Lane(
        "rollout/zero_variance_fraction",
        {
            "tasks.families": NEVER_SEEN,
            "rewards.preset": "task-score.v1",
            "alarms.steps_without_update": 3,
        },
    ),
    "parse_collapse": Lane("rollout/parse_error_rate", {"sampling.max_completion_tokens": 9}),
    "rolled_back": Lane(
        "rollout/success",
        {
            "optimiser.learning_rate": 0.05,
            "checkpoints.every": 1,
            "checkpoints.roll_back_on": ["parse_collapse"],
        },
    ),
    "saturated_term": Lane("rollout/reward_mean", {}),
    "settled": Lane(
        "loss/entropy",
        {
            "sampling.temperature": 0.1,
            "algorithm.groups_per_step": 6,
            "alarms.settled_flat": 0.6,
            "alarms.settled_entropy": 0.05,
        },
        num_steps=6,
    ),
    "truncation": Lane("rollout/truncation_rate", {"sampling.max_context_tokens": 128}),
    "zero_variance": Lane(
        "rollout/zero_variance_fraction",
        {"algorithm.group_size": 2, "rewards.preset": "task-score.v1", "alarms.zero_variance_fraction": 0.6},
    ),
}
"""Guard -> its lane. First desk's tasks have limits of turns of their own, so tokens run out."""
NOT_TRIED = {"errored_trajectories": "no setting makes First desk's desktops fail"}
"""Guards with a remedy and no lane, and why."""
HEALTHY = "healthy"
"""A run as it ships: no alarm may stand at its end."""
SEEDS = (1, 2, 3)
HEALTHY_STEPS = 10
BAR = 10 / 11
SERIES = sorted({lane.series for lane in LANES.values()})
LIMIT_S = 900
START_LIMIT_S = 600.0
"""On a busy machine."""
POLL_S = 5.0
HEADER = ("alarm", "set wrong", "in the first run", "remedy", "in the clone", "bar")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lanes", nargs="+", choices=[*LANES, HEALTHY], default=[*LANES, HEALTHY])
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--groups", type=int, default=3, help="per step")
    add_resume(arguments)
    options = arguments.parse_args()
    budget = {"steps": options.steps, "groups": options.groups}
    runs = FinishedRuns(name="remedies", budget=budget, resume=options.resume)
    chosen = [lane for lane in options.lanes if lane != HEALTHY]
    keys = [{"lane": HEALTHY, "seed": seed, "try": again} for seed in SEEDS for again in (1, 2)]
    kept = rows_of_others(options.lanes)
    with Instance(start_timeout_s=START_LIMIT_S) as deskhand:
        rows = [runs.once({"lane": lane}, partial(measure, deskhand, lane, **budget)) for lane in chosen]
        healthy = keys if HEALTHY in options.lanes else []
        calm = [runs.once(key, partial(measure_healthy, deskhand, key["seed"])) for key in healthy]
    print_table(HEADER, [row_of(row) for row in rows])
    if calm:
        print_table(
            ("seed", "alarms at the end"), [(row["seed"], ", ".join(row["standing"])) for row in calm]
        )
    runs.runs = [*kept, *runs.runs]
    return runs.finish(passed=meets_bar(runs.runs), not_tried=NOT_TRIED)


def rows_of_others(lanes: Sequence[str]) -> list[Run]:
    """What the result file keeps of lanes that this call leaves out."""
    stored = json.loads((RESULTS / "remedies.json").read_text())["figures"]["runs"]
    others = [row for row in stored if row["lane"] not in lanes]
    names = [{"row": label({"lane": row["lane"]})} for row in others]  # older rows have none
    return [{**row, "conditions": name | row["conditions"]} for row, name in zip(others, names, strict=True)]


def meets_bar(rows: Sequence[Run]) -> bool:
    """Of every lane and of six healthy runs."""
    cleared = sum(row["passed"] for row in rows if row["lane"] != HEALTHY)
    calm = [row["passed"] for row in rows if row["lane"] == HEALTHY]
    return cleared >= BAR * (len(LANES) + len(NOT_TRIED)) and len(calm) == 2 * len(SEEDS) and all(calm)


def measure(deskhand: Instance, lane: str, *, steps: int, groups: int) -> dict[str, Any]:
    """The run with the alarm, and its clone; with None for the clone when the alarm did not fire."""
    found = LANES[lane]
    steps = found.num_steps or steps
    number = launch_short(deskhand, steps, {"algorithm.groups_per_step": groups, **found.wrong})
    limit_s = LIMIT_S * max(1, steps // 3)
    first = figures_of(follow(deskhand, number, limit_s, *SERIES, poll_s=POLL_S), lane, found.series)
    clone: dict[str, Any] | None = None
    remedy: list[str] = []
    if lane in first["alarms"]:
        cloned, remedy = clone_with_remedy(deskhand, f"/experiments/{number}/alarms/{lane}/")
        described = follow(deskhand, cloned, limit_s, *SERIES, poll_s=POLL_S)
        clone = figures_of(described, lane, found.series)
    has_cleared = clone is not None and clone["status"] == "finished" and lane not in clone["alarms"]
    is_whole = first["status"] == "finished" and (clone is None or clone["status"] == "finished")
    return {
        "series": found.series,
        "wrong": found.wrong,
        "first": first,
        "remedy": remedy,
        "clone": clone,
        "passed": has_cleared,
        "status": "finished" if is_whole else "failed",
    }


def measure_healthy(deskhand: Instance, seed: int) -> dict[str, Any]:
    """The alarms that stand at the end of a run as it ships."""
    number = launch_short(deskhand, HEALTHY_STEPS, {"optimiser.seed": seed})
    described = follow(deskhand, number, LIMIT_S * 2, poll_s=POLL_S)
    standing = [alarm["name"] for alarm in described["alarms"] if alarm["status"] != "cleared"]
    return {
        "steps": described["step"],
        "status": described["status"],
        "alarms": {alarm["name"]: alarm["step"] for alarm in described["alarms"]},
        "standing": standing,
        "passed": described["status"] == "finished" and not standing,
    }


def launch_short(deskhand: Instance, steps: int, values: Mapping[str, object]) -> int:
    """First desk without evaluations."""
    sizes = {"algorithm.num_steps": steps, "evaluation.before": False, "evaluation.after": False}
    return launch(deskhand, "--preset", "first-desk", *settings({**sizes, **values}))


def clone_with_remedy(deskhand: Instance, path: str, part: str = "body") -> tuple[int, list[str]]:
    """(the clone's number, the changes that its form listed), by the buttons that a person presses.

    `part` of the page at `path` has the first one.
    """
    with chromium_page() as page:
        sign_in(page, deskhand)
        page.goto(f"{deskhand.url}{path}")
        page.locator(part).get_by_role("link", name="Clone with this remedy").click()
        changes = page.locator("#remedy li").all_inner_texts()
        page.locator("#launch-button:enabled").click()
        page.wait_for_url(lambda url: "/launch/" not in url)
        return int(page.url.split("/experiments/")[1].split("/")[0]), changes


def figures_of(described: dict[str, Any], lane: str, series: str) -> dict[str, Any]:
    """Status, verdict, every alarm with its last step, and the watched series."""
    alarms = {alarm["name"]: alarm for alarm in described["alarms"]}
    return {
        "status": described["status"],
        "step": described["step"],
        "verdict": described["verdict"],
        "alarms": {name: alarm["step"] for name, alarm in alarms.items()},
        "message": alarms[lane]["message"] if lane in alarms else "",
        "values": described["metrics"].get(series, []),
    }


def row_of(row: dict[str, Any]) -> tuple[object, ...]:
    wrong = ", ".join(f"{name} {value}" for name, value in row["wrong"].items())
    runs = [row["first"], row["clone"]]
    values = [" ".join(f"{value:.2f}" for _, value in run["values"]) if run else "" for run in runs]
    return (row["lane"], wrong, values[0], "; ".join(row["remedy"]), values[1], row["passed"])


if __name__ == "__main__":
    sys.exit(main())
