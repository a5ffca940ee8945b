"""Chaos on the whole product: First desk trains in small steps while everything around it dies or runs full.

Real path throughout: `manage.py up` with its own data folder (supervisor, Redis, web, dispatcher, desk host,
env workers, gpu worker, policy server, trainer) and X11 desktops. A lane is one experiment on one
installation; its faults strike one after another, each while trajectories are in the middle of their turns,
and each proves that it hit (the pid is gone, another writer is refused, no byte is free ...). Before the next
one another trajectory has to be scored and another step made.

Bar, for every lane: the experiment finishes all its steps; every place of every group that was not called off
has exactly one scored trajectory; nothing that errored has a score or reward; no turn is missing or twice; no
trajectory ran out of time; every screenshot that a row names is whole. Faults that take no desktop, worker or
policy away cost no trajectory. What has to be told is told while the fault lasts.

Small disks, disks that stand still and a network that can be cut need root; the clock needs a C compiler
(`stepped_clock.c` is preloaded into all processes, and moves the wall clock but not the monotonic one).

`--far` strikes what stands elsewhere instead: an env server, hosts that joined, and the port by which they
come. `--only` runs lanes and keeps them; `--resume` without it measures those missing, and writes the result.

    python -m benchmarks.chaos.product [--far] [--only PATTERN] [--resume] [--keep]
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.chaos.product_faults import Fault
from benchmarks.chaos.product_judge import judge, without_paths
from benchmarks.chaos.product_lanes import FAR_LANES, LANES, Lane, ground
from benchmarks.chaos.product_run import FINAL, Mark, Missed, Records, Run
from benchmarks.desktops.fleet_throughput import leftover, traces
from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import RESULTS, print_table
from testing.experiment_runs import launch, settings
from testing.joined_machine import processes_of
from testing.small_disk import NoGround

PRESET = "first-desk"
SMALL = {
    "algorithm.group_size": 4,
    "algorithm.groups_per_step": 1,
    "evaluation.before": False,
    "evaluation.num_tasks": 2,
    "checkpoints.every": 1,
    "checkpoints.max_restarts": 3,
    "desktops.num_desktops": 4,
    "desktops.retries": 3,
}
QUICK_STEP_S = 2.5
SPARE_STEPS = 4
"""Before the first fault, while one is made ready, and after the last."""
GO_ON_LIMIT_S = 600.0
END_LIMIT_S = 1200.0
MOST_STRIKES = 3
LOOK_S = 1.0
HEADER = ["lane", "fault", "proof", "told", "errored", "trajectory s", "step s", "passed"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="lanes whose name this pattern finds")
    arguments.add_argument("--far", action="store_true", help="what stands on other machines")
    add_resume(arguments)
    arguments.add_argument("--keep", action="store_true", help="leave the data folder of a lane that failed")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unmounts, and ends what it started
    listed = FAR_LANES if options.far else LANES
    runs = FinishedRuns(
        name="chaos_far" if options.far else "chaos_product",
        budget={"preset": PRESET} | SMALL,
        resume=options.resume,
        results=options.results,
    )
    lanes = [lane for lane in listed if re.search(options.only, lane.name)]
    try:
        for lane in lanes:
            key = {"lane": lane.name, "faults": [fault.name for fault in lane.faults]}
            found = runs.once(key, lambda lane=lane: measure(lane, keep=options.keep))
            show([found])
    except NoGround as exc:
        sys.stderr.write(f"chaos_product: {exc}\n")
        return 2
    if options.only:
        return 0 if all(run["passed"] for run in runs.runs) else 1
    known = {lane.name for lane in listed}
    whole = [run for run in runs.runs if run["lane"] in known]
    show(whole)
    passed = len(whole) == len(listed) and all(run["passed"] for run in whole)
    return runs.finish(passed=passed)


def measure(lane: Lane, *, keep: bool) -> dict[str, Any]:
    """One lane from its installation's start to its end. Raises NoGround."""
    started = time.monotonic()
    with ground(lane) as run:
        num_steps = SPARE_STEPS + sum(map(steps_meanwhile, lane.faults))
        changes = SMALL | {"algorithm.num_steps": num_steps} | lane.changes
        if lane.begin:
            changes |= lane.begin(run)
        run.experiment = launch(run.deskhand, "--preset", PRESET, *settings(changes))
        wait_for_step(run, 1)
        struck = [strike(run, fault) for fault in lane.faults]
        deadline = time.monotonic() + END_LIMIT_S
        while run.progress().status not in FINAL and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        judged = judge(run, num_steps)
        remains = traces(run.folder)
        run.stack.close()
        run.deskhand.stop()
        left = leftover(run.folder, remains["processes"])
        left += sum(len(processes_of(host.data)) for host in run.hosts)
        passed = judged["passed"] and all(row["passed"] for row in struck) and not left
        if keep and not passed:
            run.deskhand.is_temporary = False
            print(f"{lane.name}: left in {run.folder}", flush=True)
    return {
        "status": "finished" if passed else "failed",
        "strikes": struck,
        "judged": judged,
        "processes_left": left,
        "seconds": round(time.monotonic() - started, 1),
        "passed": passed,
    }


def steps_meanwhile(fault: Fault) -> int:
    """As many as a quick machine makes until the fault is over, and one for what follows it."""
    return 1 + (0 if fault.waits else math.ceil(fault.lasts_s / QUICK_STEP_S))


def wait_for_step(run: Records, step: int) -> None:
    deadline = time.monotonic() + END_LIMIT_S
    while (found := run.progress()).step < step:
        if found.status in FINAL or time.monotonic() > deadline:
            raise RuntimeError(f"no step {step}: the experiment is {found.status}: {found.message}")
        time.sleep(LOOK_S)


def strike(run: Run, fault: Fault) -> dict[str, Any]:
    """Throw it until it hits; then until the experiment goes on."""
    for _ in range(MOST_STRIKES):
        before = run.mark()
        try:
            with fault.strike(run) as proof:
                print(f"  {fault.name}: {proof}", flush=True)
                said = listen(run, before, fault.lasts_s)
            break
        except Missed as reason:
            proof, said = f"MISSED: {reason}", []
            print(f"  {fault.name}: {proof}", flush=True)
    else:
        return {"fault": fault.name, "proof": proof, "passed": False}
    times = go_on(run)
    said += run.told(before)
    told = next((text for text in said if re.search(fault.tells, text)), "") if fault.tells else ""
    errors = run.rows(
        f"select error_kind, error from trajectories_trajectory where experiment_id = {run.experiment}"
        f" and status = 'errored' and id not in ({before.errored})"
    )
    return {
        "fault": fault.name,
        "proof": without_paths(proof),
        "told": without_paths(told),
        "errored": len(errors),
        "errors": sorted({f"{kind}: {error[:120]}" for kind, error in errors}),
        **times,
        "passed": (
            None not in times.values() and (bool(told) or not fault.tells) and (fault.may_error or not errors)
        ),
    }


def listen(run: Run, before: Mark, lasts_s: float) -> list[str]:
    """What is said while the fault lasts."""
    said: dict[str, None] = {}
    ends = time.monotonic() + lasts_s
    while True:
        said.update(dict.fromkeys(run.told(before)))
        if time.monotonic() >= ends:
            return list(said)
        time.sleep(LOOK_S)


def go_on(run: Records) -> dict[str, float | None]:
    """Seconds from the fault's end to the next scored trajectory and the next step, or to the end."""
    started, before = time.monotonic(), run.progress()
    times: dict[str, float | None] = {"trajectory_s": None, "step_s": None}
    while time.monotonic() - started < GO_ON_LIMIT_S and None in times.values():
        now = run.progress()
        took_s = round(time.monotonic() - started, 1)
        if times["trajectory_s"] is None and now.num_scored > before.num_scored:
            times["trajectory_s"] = took_s
        if times["step_s"] is None and now.step > before.step:
            times["step_s"] = took_s
        if now.status == "finished":  # its last step was made while the fault lasted
            return {name: took_s if found is None else found for name, found in times.items()}
        time.sleep(LOOK_S / 4)
    return times


def show(runs: list[dict[str, Any]]) -> None:
    rows = []
    for run in runs:
        for row in run["strikes"]:
            rows.append(
                (
                    run["lane"], row["fault"], row["proof"][:60], row.get("told", "")[:60] or "-",
                    row.get("errored", "-"), row.get("trajectory_s", "-"), row.get("step_s", "-"),
                    "yes" if row["passed"] else "NO",
                )
            )  # fmt: skip
        wrong = {name: number for name, number in run["judged"]["counts"].items() if number}
        end = f"{run['judged']['end']} after {run['seconds']:.0f} s"
        rows.append((run["lane"], "-> the records", end, wrong or "nothing wrong", "", "", "", run["status"]))
    print_table(HEADER, rows)


if __name__ == "__main__":
    sys.exit(main())
