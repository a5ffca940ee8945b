"""The compose file on a real engine: built, started, upgraded, used, hurt, backed up and stopped.

The images of `--before` start first, and a First desk begins to train on them. `up --wait` then changes
every container to the images of the working tree while it trains, and it has to finish. Then a First desk of
two steps, a live desktop watched and taken over through noVNC in Chromium, SIGKILL to the main process of
each container, a backup, and an end by SIGTERM alone.

It needs Docker with Compose 2.24 or newer, and 12 GB of disk. Where no image hub answers, Debian's packages
stand in for the base images. `TORCH_INDEX` in the environment names the index of torch's build for the CPU.

    python -m benchmarks.containers [--before COMMIT]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks.chaos.cluster import KINDS, hurt
from benchmarks.chaos.product_run import Missed
from benchmarks.report import RESULTS, finish, print_table
from testing.containers import base_images, engine
from testing.containers.desktop_in_browser import watch_and_take_over
from testing.containers.engine import Checkout, Site
from testing.experiment_runs import FINAL, launch, settings
from testing.watch_installation import rows, wait_for

SMALL = {
    "algorithm.group_size": 4,
    "algorithm.groups_per_step": 1,
    "evaluation.before": False,
    "evaluation.num_tasks": 2,
    "checkpoints.every": 1,
}
TWO_STEPS = SMALL | {"algorithm.num_steps": 2}
LONG = SMALL | {"algorithm.num_steps": 8}
"""Long enough to be in the middle when the containers change."""
NOTHING_WITHOUT = 3
"""Steps that all others need."""
END_LIMIT_S = 2400
ENDED_BY_SIGTERM = (0, 143)
FAILURES = (
    AssertionError,
    TimeoutError,
    RuntimeError,
    engine.CommandFailed,
    subprocess.SubprocessError,
    httpx.HTTPError,
    psycopg.Error,
    Missed,
)
Figures = dict[str, Any]


class CutShort(Exception):
    """Raised by SIGTERM: the containers are taken down, and the steps until then are kept."""


@dataclass
class Lane:
    """What was done on the site, how long it took, and what went wrong."""

    site: Site
    steps: list[Figures] = field(default_factory=list)

    def do(self, name: str, work: Callable[[Site], Figures]) -> bool:
        """Keep its figures and seconds, and whether it failed."""
        started = time.monotonic()
        print(f"  {name} ...", flush=True)
        try:
            found = work(self.site) | {"passed": True}
        except FAILURES as error:
            found = {"passed": False, "error": str(error)[-4000:]}
        self.steps.append({"step": name, "seconds": round(time.monotonic() - started, 1)} | found)
        print(f"  {json.dumps(self.steps[-1])}", flush=True)
        return bool(found["passed"])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--before", default="HEAD~1", help="the commit whose images are upgraded")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, cut_short)
    if reason := engine.missing():
        sys.stderr.write(f"containers: {reason}\n")
        return 2
    figures = walk(options.before)
    print_table(["step", "s", "passed"], [[s["step"], s["seconds"], s["passed"]] for s in figures["steps"]])
    return finish("containers", figures, passed=figures["passed"], results=options.results)


def cut_short(*_: object) -> None:
    raise CutShort


def walk(before: str) -> Figures:
    """The whole lane. Raises NoEngine where the base images cannot be had."""
    bases = base_images.provide()
    with engine.folder_of_checkouts() as folder:
        old = engine.checkout(folder / "before", before, "before")
        new = engine.checkout(folder / "now", "", "now")
        with engine.site(old) as site:
            lane = Lane(site)
            with suppress(CutShort):
                for name, work in steps(new):
                    if not lane.do(name, work):
                        print(site.compose("logs", "--no-color", "--tail=40"), flush=True)
                        if len(lane.steps) <= NOTHING_WITHOUT:
                            break
            sizes = image_sizes(new)
    return {
        "engine": engine.versions(),
        "bases": bases,
        "images_gb": sizes,
        "steps": lane.steps,
        "passed": len(lane.steps) == len(steps(new)) and all(step["passed"] for step in lane.steps),
    }


def steps(new: Checkout) -> list[tuple[str, Callable[[Site], Figures]]]:
    def build_now(site: Site) -> Figures:
        old, site.checkout = site.checkout, new
        build(site)
        site.checkout = old
        return {}

    def upgrade_to_now(site: Site) -> Figures:
        number = begin_training(site)
        site.checkout = new
        return upgrade(site, number)

    return [
        ("build the images of before", build),
        ("build the images of now", build_now),
        ("start those of before", start),
        ("upgrade while it trains", upgrade_to_now),
        ("watch and take over a desktop", take_over),
        ("backup", backup),
        ("Ctrl-C in a First desk of two steps, and on", two_steps),
        ("a quiet minute", quiet_minute),
        ("a crash of each container while it trains", crash_each),
        ("down", down),
    ]


def build(site: Site) -> Figures:
    site.build()
    return {}


def start(site: Site) -> Figures:
    site.up()
    assert httpx.get(f"{site.url}/readyz", timeout=30, trust_env=False).status_code == 200
    username, _ = site.credentials
    assert f"user {username}, password" in site.compose("logs", "prepare")
    return site.prepared()


def begin_training(site: Site) -> int:
    number = launch(site, "--preset", "first-desk", *settings(LONG))
    wait_for_step(site, number, 2)
    return number


def wait_for_step(site: Site, number: int, least: int) -> None:
    def is_made() -> bool:
        status, step, message = progress(site, number)
        assert status not in FINAL, f"experiment {number} {status}: {message}"
        return step >= least

    wait_for(f"step {least}", is_made, patience_s=END_LIMIT_S, poll_s=1)


def upgrade(site: Site, number: int) -> Figures:
    before = progress(site, number)[1]
    started = time.monotonic()
    site.up()
    away_s = time.monotonic() - started
    assert progress(site, number)[0] not in FINAL, "it had ended before the upgrade: nothing was shown"
    step = wait_for_end(site, number)
    ours = f"where experiment_id = {number}"
    means = f"experiments_metricpoint {ours} and name = 'rollout/reward_mean'"
    repeated = rows(site, f"select step from {means} group by step having count(*) <> 1")
    assert not repeated, f"steps recorded twice: {repeated}"
    attempts = rows(site, f"select count(*) from experiments_attempt {ours}")[0][0]
    kinds = rows(site, f"select status, count(*) from trajectories_trajectory {ours} group by status")
    return {
        "up_s": round(away_s, 1),
        **site.prepared(),
        "step_before": before,
        "step_after": step,
        "attempts": attempts,
        "trajectories": dict(kinds),
    }


def wait_for_end(site: Site, number: int) -> int:
    wait_for("its end", lambda: progress(site, number)[0] in FINAL, patience_s=END_LIMIT_S, poll_s=1)
    status, step, message = progress(site, number)
    assert status == "finished", f"experiment {number} {status}: {message}"
    return step


def progress(site: Site, number: int) -> tuple[str, int, str]:
    query = f"select status, step, message from experiments_experiment where id = {number}"
    (found,) = rows(site, query)
    return found


def take_over(site: Site) -> Figures:
    written = LONG | {"algorithm.num_steps": 60, "tasks.families": ["note"]}  # where typed letters are seen
    number = launch(site, "--preset", "first-desk", *settings(written))
    try:
        return watch_and_take_over(site, number)
    finally:
        if progress(site, number)[0] not in FINAL:
            site.manage("experiment", str(number), "cancel")
        wait_for("its end", lambda: progress(site, number)[0] in FINAL, patience_s=END_LIMIT_S, poll_s=1)


def crash_each(site: Site) -> Figures:
    """Each container, while a First desk trains: nothing is lost, nothing twice."""
    found = hurt(site, KINDS[0])
    assert found["passed"], json.dumps(found)
    return {key: found[key] for key in ("strikes", "judged")}


def quiet_minute(site: Site) -> Figures:
    """Lines of an idle minute; the same one must not come again and again."""
    time.sleep(75)
    lines = site.compose("logs", "--no-color", "--since=60s").splitlines()
    counted: dict[str, int] = {}
    for line in lines:
        words = "".join("0" if letter.isdigit() else letter for letter in line)
        counted[words] = counted.get(words, 0) + 1
    often = {line: times for line, times in counted.items() if times > 2}
    assert not often, f"repeated in an idle minute: {often}"
    return {"lines": len(lines)}


def backup(site: Site) -> Figures:
    said = json.loads(site.manage("backup", "/data/deskhand.tar", timeout_s=900).splitlines()[-1])
    target = site.checkout.folder / "deskhand.tar"
    site.compose("cp", "web:/data/deskhand.tar", str(target))
    with tarfile.open(target) as archive:
        names = archive.getnames()
    assert any("manifest" in name for name in names), names[:10]
    return {"bytes": said["bytes"], "files": len(names)}


def two_steps(site: Site) -> Figures:
    """Ctrl-C in the terminal of `docker compose up` while it trains; started again, it goes on to its end.

    An exit of 137 is the engine's SIGKILL after the grace.
    """
    number = launch(site, "--preset", "first-desk", *settings(TWO_STEPS))
    wait_for_step(site, number, 1)
    services = site.services()
    seconds = site.interrupt()
    codes = {service: site.state(service)["ExitCode"] for service in services}
    site.up()
    step = wait_for_end(site, number)
    killed = {service: code for service, code in codes.items() if code not in ENDED_BY_SIGTERM}
    assert not killed, f"not ended by SIGTERM: {killed}"
    return {"ctrl_c_s": round(seconds, 1), "exit_codes": codes, "step_after": step}


def down(site: Site) -> Figures:
    site.down()
    return {}


def image_sizes(checkout: Checkout) -> dict[str, float]:
    names = ("web", "env-worker", "gpu-worker")
    return {name: engine.image_gb(f"deskhand-test/{name}:{checkout.tag}") for name in names}


if __name__ == "__main__":
    sys.exit(main())
