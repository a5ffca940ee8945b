"""Chaos where others start the processes: the containers of the compose file, and a SLURM of two nodes.

A lane is one experiment. In containers it is one kind of kill, which strikes every container after another;
on SLURM all that ends, moves or forgets a job. Each strikes while trajectories are in the middle of their
turns, and the lane waits until another one is scored and another step is made. Afterwards the experiment has
to finish, with nothing lost and nothing twice: the judge is that of `benchmarks.chaos.product`. Only what
trajectories run on may cost any.

It needs what `benchmarks.containers` needs, or SLURM, and root, which reads the screenshots in the volume.
`--only` runs lanes and keeps them; `--resume` without it measures those missing, and writes the result.

    python -m benchmarks.chaos.cluster containers|slurm [--only PATTERN] [--resume]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.chaos.cluster_blows import Blow, show, train_under
from benchmarks.chaos.cluster_slurm import SLURM, blows_of_slurm, missing_slurm, slurm_site
from benchmarks.chaos.product import QUICK_STEP_S, SMALL
from benchmarks.chaos.product_run import Missed
from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import RESULTS
from testing.containers import base_images, engine
from testing.containers.engine import Site, docker
from testing.watch_installation import wait_for

SERVICES = ("web", "dispatcher", "env-worker", "deskhost", "gpu-worker", "redis", "postgres")
TAKES_AWAY = ("env-worker", "deskhost", "gpu-worker")
"""What trajectories run on; no other one may cost any."""
CUT_S = 25.0
HEALTHY_AFTER_S = 40.0
"""Its health is looked at every ten seconds."""


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
    Kind("SIGKILL", crashed, lasts_s=HEALTHY_AFTER_S),
    Kind("stop and start", stopped, lasts_s=HEALTHY_AFTER_S),
    Kind("frozen", frozen, lasts_s=CUT_S + HEALTHY_AFTER_S),
    Kind("network cut", cut_off, lasts_s=CUT_S + HEALTHY_AFTER_S),
)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("place", choices=("containers", "slurm"))
    arguments.add_argument("--only", default="", help="lanes whose name this pattern finds")
    add_resume(arguments)
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # takes the containers down
    reason = engine.missing() if options.place == "containers" else missing_slurm()
    if os.geteuid() != 0:
        reason = "only root reads the volume"
    name = f"chaos_{options.place}"
    if reason:
        sys.stderr.write(f"{name}: {reason}\n")
        return 2
    runs = FinishedRuns(
        name=name, budget={"preset": "first-desk"} | SMALL, resume=options.resume, results=options.results
    )
    with lanes(options.place) as found:
        for lane, run in found.items():
            if re.search(options.only, lane):
                show(runs.once({"lane": lane}, lambda run=run: timed(run)))
    if options.only:
        return 0 if all(run["passed"] for run in runs.runs) else 1
    return runs.finish(passed=len(runs.runs) == len(found) and all(run["passed"] for run in runs.runs))


@contextmanager
def lanes(place: str) -> Iterator[dict[str, Callable[[], dict[str, Any]]]]:
    """By name."""
    if place == "slurm":
        yield {SLURM: on_slurm}
        return
    with containers() as site:
        yield {kind.name: partial(hurt, site, kind) for kind in KINDS}


@contextmanager
def containers() -> Iterator[Site]:
    """Those of the working tree, up."""
    base_images.provide()
    with (
        engine.folder_of_checkouts() as folder,
        engine.site(engine.checkout(folder / "now", "", "now")) as site,
    ):
        site.build()
        site.up()
        yield site


def timed(lane: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    started = time.monotonic()
    found = lane()
    status = "finished" if found["passed"] else "failed"
    return {"status": status, **found, "seconds": round(time.monotonic() - started, 1)}


def hurt(site: Site, kind: Kind) -> dict[str, Any]:
    """Each container, while one experiment trains from its first step to its end."""
    blows = [
        Blow(
            service,
            lambda _, service=service: kind.strike(site, service),
            steps_meanwhile(kind, service),
            service in TAKES_AWAY,
        )
        for service in SERVICES
    ]
    return train_under(site, kind.name, blows)


def steps_meanwhile(kind: Kind, service: str) -> int:
    """As many as a quick machine makes until the blow is over, and one for what follows it."""
    holds_up = service in (*TAKES_AWAY, "postgres")
    return 1 + (0 if holds_up else math.ceil(kind.lasts_s / QUICK_STEP_S))


def on_slurm() -> dict[str, Any]:
    """A job per attempt; each blow ends, moves or forgets it."""
    with slurm_site() as (slurm, deskhand):
        return train_under(deskhand, SLURM, blows_of_slurm(slurm, deskhand))


if __name__ == "__main__":
    sys.exit(main())
