"""One experiment that trains from its first step to its end, while one blow after another falls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.chaos.product import END_LIMIT_S, LOOK_S, SMALL, go_on, wait_for_step
from benchmarks.chaos.product_judge import judge, without_paths
from benchmarks.chaos.product_run import FINAL, Missed, Records
from benchmarks.report import print_table
from testing.containers.engine import Site
from testing.experiment_runs import launch, settings
from testing.private_installation import Instance

SPARE_STEPS = 4
MOST_STRIKES = 3
RESTARTS = 20
"""Blows are not the experiment's own faults."""


@dataclass(frozen=True)
class Blow:
    """What hurts; `strike` says how it hit, and raises Missed where that cannot be shown."""

    name: str
    strike: Callable[[Records], str]
    steps: int
    """That the experiment makes meanwhile, and for what follows."""
    may_error: bool = False
    """Trajectories run on what it takes away."""


def train_under(place: Site | Instance, lane: str, blows: Sequence[Blow]) -> dict[str, Any]:
    num_steps = SPARE_STEPS + sum(blow.steps for blow in blows)
    changes = SMALL | {"algorithm.num_steps": num_steps, "checkpoints.max_restarts": RESTARTS}
    number = launch(place, "--preset", "first-desk", *settings(changes))
    records = Records(place, experiment=number)
    wait_for_step(records, 1)
    struck = [throw(records, lane, blow) for blow in blows]
    deadline = time.monotonic() + END_LIMIT_S
    while records.progress().status not in FINAL and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    judged = judge(records, num_steps)
    passed = judged["passed"] and all(row["passed"] for row in struck)
    return {"strikes": struck, "judged": judged, "passed": passed}


def throw(records: Records, lane: str, blow: Blow) -> dict[str, Any]:
    """Until it hits; then until the experiment goes on."""
    before = errors(records)
    for _ in range(MOST_STRIKES):
        try:
            records.wait_running()
            proof = blow.strike(records)
            break
        except Missed as reason:
            proof = f"MISSED: {reason}"
    else:
        return {"hits": blow.name, "proof": proof, "passed": False}
    times = go_on(records)
    new = {number: text for number, text in errors(records).items() if number not in before}
    print(f"  {lane}, {blow.name}: {proof}, {times}, {len(new)} errored", flush=True)
    return {
        "hits": blow.name,
        "proof": proof,
        "errored": len(new),
        "errors": sorted(set(new.values())),
        **times,
        "passed": None not in times.values() and (blow.may_error or not new),
    }


def errors(records: Records) -> dict[int, str]:
    """Errored trajectories and why."""
    found = records.rows(
        "select id, error_kind, error from trajectories_trajectory where status = 'errored'"
        f" and experiment_id = {records.experiment}"
    )
    return {number: without_paths(f"{kind}: {text[:120]}") for number, kind, text in found}


def show(run: dict[str, Any]) -> None:
    header = ["lane", "hits", "proof", "errored", "trajectory s", "step s", "passed"]
    keys = ("hits", "proof", "errored", "trajectory_s", "step_s", "passed")
    print_table(header, [[run["lane"], *(row.get(key, "") for key in keys)] for row in run["strikes"]])
    print(run["judged"], flush=True)
