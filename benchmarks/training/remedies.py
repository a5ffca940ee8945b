"""Remedies of alarms, tried: does the clone that a page fills in do without the alarm?

Each lane trains First desk's start on real desktops with knobs that bring a guard to fire. Then Chromium
opens the alarm's page, presses "Clone with this remedy" and launches what the form holds, unchanged; the
clone trains for as many steps. Nothing is evaluated.

Bar, per lane: the alarm fired in the first run; in the clone it never did. A remedy without a lane misses it.

    python -m benchmarks.training.remedies [--lanes parse_collapse] [--steps 3] [--groups 3] [--resume]
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import print_table
from testing.browser.chromium import chromium_page, sign_in
from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance

LANES: dict[str, tuple[str, dict[str, object]]] = {
    "parse_collapse": ("rollout/parse_error_rate", {"sampling.max_completion_tokens": 9}),
    "saturated_term": ("rollout/reward_mean", {}),
    "truncation": ("rollout/truncation_rate", {"sampling.max_context_tokens": 128}),
    "zero_variance": (
        "rollout/zero_variance_fraction",
        {"algorithm.group_size": 2, "rewards.preset": "task-score.v1", "alarms.zero_variance_fraction": 0.6},
    ),
}
"""Guard -> the series that tells of it, and what is set wrong, or how sensitive the guard is made. First
desk's own rewards saturate a term; its tasks have limits of turns of their own, so here tokens run out."""
COLLAPSE = "it needs a learning rate at which a run collapses, and at half of it not: not looked for"
SAME_MODEL = "on a CPU engine and trainer run one model: 2e-5 to 7e-5 nats apart in bfloat16"
NOT_TRIED = {
    "all_zero_rewards": "replay needs successes that such a run has not got",
    "entropy_collapse": COLLAPSE,
    "errored_trajectories": "no knob makes First desk's desktops fail",
    "grad_norm_explosion": COLLAPSE,
    "no_update": "replay needs accepted successes first: benchmarks.gpu.replay_matters brings them",
    "settled": COLLAPSE,
    "logprob_drift": SAME_MODEL,
    "logprob_gap": SAME_MODEL,
    "rolled_back": COLLAPSE,
}
"""Guards with a remedy and no lane, and why."""
LIMIT_S = 900
POLL_S = 5.0
HEADER = ("alarm", "set wrong", "in the first run", "remedy", "in the clone", "bar")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lanes", nargs="+", choices=LANES, default=list(LANES))
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--groups", type=int, default=3, help="per step")
    add_resume(arguments)
    options = arguments.parse_args()
    budget = {"steps": options.steps, "groups": options.groups}
    runs = FinishedRuns(name="remedies", budget=budget, resume=options.resume)
    rows = [runs.once({"lane": lane}, partial(measure, lane, **budget)) for lane in options.lanes]
    print_table(HEADER, [row_of(row) for row in rows])
    return runs.finish(passed=all(row["passed"] for row in rows) and not NOT_TRIED, not_tried=NOT_TRIED)


def measure(lane: str, *, steps: int, groups: int) -> dict[str, Any]:
    """The run with the alarm, and its clone; with None for the clone when the alarm did not fire."""
    series, wrong = LANES[lane]
    values: dict[str, object] = {
        "algorithm.num_steps": steps,
        "algorithm.groups_per_step": groups,
        "evaluation.before": False,
        "evaluation.after": False,
        **wrong,
    }
    with Instance() as deskhand:
        number = launch(deskhand, "--preset", "first-desk", *settings(values))
        first = figures_of(follow(deskhand, number, LIMIT_S, series, poll_s=POLL_S), lane, series)
        clone: dict[str, Any] | None = None
        remedy: list[str] = []
        if lane in first["alarms"]:
            cloned, remedy = clone_with_remedy(deskhand, number, lane)
            clone = figures_of(follow(deskhand, cloned, LIMIT_S, series, poll_s=POLL_S), lane, series)
    has_cleared = clone is not None and clone["status"] == "finished" and lane not in clone["alarms"]
    is_whole = first["status"] == "finished" and (clone is None or clone["status"] == "finished")
    return {
        "series": series,
        "wrong": wrong,
        "first": first,
        "remedy": remedy,
        "clone": clone,
        "passed": has_cleared,
        "status": "finished" if is_whole else "failed",
    }


def clone_with_remedy(deskhand: Instance, number: int, lane: str) -> tuple[int, list[str]]:
    """(the clone's number, the changes that its form listed), by the buttons that a person presses."""
    with chromium_page() as page:
        sign_in(page, deskhand)
        page.goto(f"{deskhand.url}/experiments/{number}/alarms/{lane}/")
        page.get_by_role("link", name="Clone with this remedy").click()
        changes = page.locator("#remedy li").all_inner_texts()
        page.locator("#launch-button:enabled").click()
        page.wait_for_url(lambda url: "/launch/" not in url)
        return int(page.url.split("/experiments/")[1].split("/")[0]), changes


def figures_of(described: dict[str, Any], lane: str, series: str) -> dict[str, Any]:
    """Status, every alarm with its last step, and the watched series."""
    alarms = {alarm["name"]: alarm for alarm in described["alarms"]}
    return {
        "status": described["status"],
        "step": described["step"],
        "alarms": {name: alarm["step"] for name, alarm in alarms.items()},
        "message": alarms[lane]["message"] if lane in alarms else "",
        "values": described["metrics"][series],
    }


def row_of(row: dict[str, Any]) -> tuple[object, ...]:
    wrong = ", ".join(f"{name} {value}" for name, value in row["wrong"].items())
    runs = [row["first"], row["clone"]]
    values = [" ".join(f"{value:.2f}" for _, value in run["values"]) if run else "" for run in runs]
    return (row["lane"], wrong, values[0], "; ".join(row["remedy"]), values[1], row["passed"])


if __name__ == "__main__":
    sys.exit(main())
