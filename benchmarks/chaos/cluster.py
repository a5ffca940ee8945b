"""Chaos on the compose file's containers: each kind of kill on each container while a First desk trains.

A lane is one experiment and one kind; it strikes every container after another, each time while trajectories
are in the middle of their turns, and waits until another one is scored and another step is made. Afterwards
the experiment has to finish, with nothing lost and nothing twice: the judge is that of
`benchmarks.chaos.product`. Only a desk host, an env worker and a gpu worker may cost trajectories.

It needs what `benchmarks.containers` needs, and root, which reads the screenshots in the volume.

    python -m benchmarks.chaos.cluster [--only PATTERN] [--resume]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.chaos.product import END_LIMIT_S, LOOK_S, QUICK_STEP_S, SMALL, go_on, wait_for_step
from benchmarks.chaos.product_judge import judge, without_paths
from benchmarks.chaos.product_run import FINAL, Missed, Records
from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import RESULTS, print_table
from testing.containers import base_images, engine
from testing.containers.engine import Site, docker
from testing.experiment_runs import launch, settings
from testing.watch_installation import wait_for

SERVICES = ("web", "dispatcher", "env-worker", "deskhost", "gpu-worker", "redis", "postgres")
TAKES_AWAY = ("env-worker", "deskhost", "gpu-worker")
"""What trajectories run on; no other one may cost any."""
CUT_S = 25.0
SPARE_STEPS = 4
MOST_STRIKES = 3
DESKTOPS = 4


@dataclass(frozen=True)
class Kind:
    """One way to hurt a container; raises Missed where it cannot be shown to have hit."""

    name: str
    strike: Callable[[Site, str], str]
    lasts_s: float
    """At least, for a container that does not hold up the training."""


def crashed(site: Site, service: str) -> str:
    """SIGKILL to its main process."""
    before = site.state(service)
    site.crash(service)
    return _back_by_itself(site, service, before)


def stopped(site: Site, service: str) -> str:
    """SIGTERM, and SIGKILL after its grace, as an engine's update does; then started again."""
    began = time.monotonic()
    site.compose("stop", service)
    took_s = time.monotonic() - began
    code = site.state(service)["ExitCode"]
    site.compose("start", service)
    site.wait_healthy(service)
    return f"ended with {code} after {took_s:.0f} s"


def frozen(site: Site, service: str) -> str:
    container = site.container(service)
    docker("pause", container)
    try:
        if not site.state(service)["Paused"]:
            raise Missed("it is not paused")
        time.sleep(CUT_S)
    finally:
        docker("unpause", container)
    site.wait_healthy(service)
    return f"paused for {CUT_S:.0f} s"


def cut_off(site: Site, service: str) -> str:
    container, network = site.container(service), f"{site.project}_default"
    docker("network", "disconnect", network, container)
    try:
        if site.address(service):
            raise Missed("it still has an address")
        time.sleep(CUT_S)
    finally:
        docker("network", "connect", f"--alias={service}", network, container)
    site.wait_healthy(service)
    return f"without a network for {CUT_S:.0f} s"


def _back_by_itself(site: Site, service: str, before: dict[str, Any]) -> str:
    wait_for(
        "its restart",
        lambda: site.state(service)["StartedAt"] != before["StartedAt"],
        patience_s=60,
    )
    took_s = site.wait_healthy(service)
    return f"pid {before['Pid']} gone, healthy again after {took_s:.0f} s"


KINDS = (
    Kind("SIGKILL", crashed, lasts_s=5.0),
    Kind("stop and start", stopped, lasts_s=5.0),
    Kind("frozen", frozen, lasts_s=CUT_S),
    Kind("network cut", cut_off, lasts_s=CUT_S),
)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="kinds whose name this pattern finds")
    add_resume(arguments)
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # takes the containers down
    if reason := engine.missing() or ("" if os.geteuid() == 0 else "only root reads the volume"):
        sys.stderr.write(f"chaos_cluster: {reason}\n")
        return 2
    runs = FinishedRuns(
        name="chaos_cluster", budget={"preset": "first-desk"} | SMALL, resume=options.resume,
        results=options.results,
    )  # fmt: skip
    kinds = [kind for kind in KINDS if re.search(options.only, kind.name)]
    base_images.provide()
    for kind in kinds:
        show(runs.once({"kind": kind.name}, lambda kind=kind: measure(kind)))
    passed = len(runs.runs) == len(KINDS) and all(run["passed"] for run in runs.runs)
    return runs.finish(passed=passed)


def measure(kind: Kind) -> dict[str, Any]:
    """One lane from `up` to `down`."""
    started = time.monotonic()
    with (
        engine.folder_of_checkouts() as folder,
        engine.site(engine.checkout(folder / "now", "", "now")) as site,
    ):
        site.build()
        site.up()
        found = hurt(site, kind)
    return {
        "status": "finished" if found["passed"] else "failed",
        **found,
        "seconds": round(time.monotonic() - started, 1),
    }


def hurt(site: Site, kind: Kind) -> dict[str, Any]:
    """Each container, while one experiment trains from its first step to its end."""
    num_steps = SPARE_STEPS + sum(steps_meanwhile(kind, service) for service in SERVICES)
    changes = SMALL | {"algorithm.num_steps": num_steps}
    number = launch(site, "--preset", "first-desk", *settings(changes))
    records = Records(site, experiment=number)
    wait_for_step(records, 1)
    struck = [strike(site, records, kind, service) for service in SERVICES]
    deadline = time.monotonic() + END_LIMIT_S
    while records.progress().status not in FINAL and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    judged = judge(records, num_steps)
    passed = judged["passed"] and all(row["passed"] for row in struck)
    return {"strikes": struck, "judged": judged, "passed": passed}


def now_in(folder: Path) -> engine.Checkout:
    return engine.checkout(folder / "now", "", "now")


def steps_meanwhile(kind: Kind, service: str) -> int:
    """As many as a quick machine makes until the blow is over, and one for what follows it."""
    holds_up = service in (*TAKES_AWAY, "postgres")
    return 1 + (0 if holds_up else math.ceil(kind.lasts_s / QUICK_STEP_S))


def strike(site: Site, records: Records, kind: Kind, service: str) -> dict[str, Any]:
    """Throw it until it hits; then until the experiment goes on."""
    before = errors(records)
    for _ in range(MOST_STRIKES):
        try:
            records.wait_running()
            proof = kind.strike(site, service)
            break
        except Missed as reason:
            proof = f"MISSED: {reason}"
    else:
        return {"service": service, "proof": proof, "passed": False}
    times = go_on(records)
    new = {number: text for number, text in errors(records).items() if number not in before}
    print(f"  {kind.name}, {service}: {proof}, {times}, {len(new)} errored", flush=True)
    return {
        "service": service,
        "proof": proof,
        "errored": len(new),
        "errors": sorted(set(new.values())),
        **times,
        "passed": None not in times.values() and (service in TAKES_AWAY or not new),
    }


def errors(records: Records) -> dict[int, str]:
    """Errored trajectories and why."""
    found = records.rows(
        "select id, error_kind, error from trajectories_trajectory where status = 'errored'"
        f" and experiment_id = {records.experiment}"
    )
    return {number: without_paths(f"{kind}: {text[:120]}") for number, kind, text in found}


def show(run: dict[str, Any]) -> None:
    header = ["kind", "container", "proof", "errored", "trajectory s", "step s", "passed"]
    keys = ("service", "proof", "errored", "trajectory_s", "step_s", "passed")
    print_table(header, [[run["kind"], *(row.get(key, "") for key in keys)] for row in run["strikes"]])
    print(run["judged"], flush=True)


if __name__ == "__main__":
    sys.exit(main())
