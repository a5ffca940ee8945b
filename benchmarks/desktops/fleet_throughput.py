"""Env fleet: how many trajectories of six turns per hour does this machine run with a scripted policy?

Real path: database queue -> Redis -> env workers -> desk host -> X11 desktops -> evaluator -> records.
The peer is the published Windows seed: about 640 trajectories an hour on 64 virtual machines. What the
desktops' defences cost is told by the same fleet without them, as it was before programs were kept apart from
the agent: both take turns, each in an installation of its own.

Bar: >= 2500 trajectories per hour; >= 90 % of those without defences, by the medians of all rounds; desktop
reset p50 <= 60 ms; no process, socket or folder left after each round of 200 trajectories.

    python -m benchmarks.desktops.fleet_throughput [--trajectories 200] [--rounds 3] [--resume]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import percentile, print_table
from testing.desk_host_process import running_host
from testing.private_installation import Instance
from testing.weak_desk_host import DEFENCES
from training.content.task_sets import first_desk
from training.contracts.types import Action, ActionKind, Purpose, Source, Task, TrajectoryStatus

ARMS: dict[str, tuple[str, ...]] = {"whole": (), "without defences": DEFENCES}
TURNS = 6
MIN_PER_HOUR = 2500
MIN_SHARE = 0.9
"""Of the throughput without defences."""
MAX_RESET_S = 0.06
PEER_PER_HOUR = 640
LIMIT_S = 900
NUM_RESETS = 40


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--trajectories", type=int, default=200)
    arguments.add_argument("--rounds", type=int, default=3)
    add_resume(arguments)
    options = arguments.parse_args()
    runs = FinishedRuns(
        name="fleet_throughput", budget={"trajectories": options.trajectories}, resume=options.resume
    )
    found: dict[str, list[dict[str, Any]]] = {arm: [] for arm in ARMS}
    for number in range(options.rounds):
        for arm in list(ARMS)[:: 1 if number % 2 else -1]:  # each arm is first every other time
            run = runs.once({"arm": arm, "round": number}, lambda arm=arm: alone(arm, options.trajectories))
            found[arm].append(run)
    return report(runs, found)


def alone(arm: str, count: int) -> dict[str, Any]:
    """In a process of its own: Django knows one installation."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run_arm, arm, count).result()


def run_arm(arm: str, count: int) -> dict[str, Any]:
    """Throughput, resets and leftovers of one fleet."""
    folder = Path(tempfile.mkdtemp(prefix="deskhand-", dir="/tmp"))
    state = folder / "deskhost"
    deskhand = Instance(
        data_dir=folder,
        without=["gpu", "web", "deskhost"],
        env={"DESKHAND_DESKHOST_SOCKET": str(state / "s")},
    )
    try:
        with running_host(state, without=ARMS[arm]), deskhand:
            os.environ.update(deskhand.environment)
            figures = measure(count)
            figures["reset_s"] = measure_resets(state / "s")
            before_stop = traces(folder)
        figures["left"] = {name: leftover(folder, found) for name, found in before_stop.items()}
        return figures | {"status": "finished"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(count: int) -> dict[str, Any]:
    """Queue `count` scripted trajectories at once and wait for the last one."""
    import django

    django.setup()
    from webapp.accounts.models import Team
    from webapp.experiments.models import TaskRecord, TaskSet
    from webapp.trajectories.models import Trajectory
    from webapp.trajectories.services.groups import GroupSpec, create_group

    team = Team.objects.order_by("pk").first()
    task_set = TaskSet.objects.create(name="six-turns")
    records = TaskRecord.objects.bulk_create(
        TaskRecord.made_from(task, task_set=task_set) for task in padded_tasks(TURNS)
    )
    started = time.monotonic()
    for number in range(count):
        request = GroupSpec(
            task=records[number % len(records)],
            size=1,
            purpose=Purpose.VERIFICATION,
            source=Source.ORACLE,
        )
        create_group(request=request, team_id=team.pk)
    rows = Trajectory.objects.filter(task__task_set=task_set)
    while rows.filter(ended_at=None).exists():
        if time.monotonic() - started > LIMIT_S:
            raise TimeoutError(f"{rows.filter(ended_at=None).count()} trajectories left after {LIMIT_S} s")
        time.sleep(0.2)
    wall_s = time.monotonic() - started
    turns = list(rows.filter(score=1.0).values_list("num_turns", flat=True))
    return {
        "trajectories": len(turns),
        "asked": count,
        "errored": rows.filter(status=TrajectoryStatus.ERRORED).count(),
        "turns_each": sum(turns) / max(1, len(turns)),
        "wall_s": wall_s,
        "per_hour": len(turns) / wall_s * 3600,
    }


def padded_tasks(turns: int) -> list[Task]:
    """First-desk train tasks whose oracle is padded with pointer moves to that number of turns."""
    padded = []
    for task in first_desk.generate():
        actions = list(task.oracle["actions"])
        missing = turns - len(actions)
        if task.split != "train" or missing < 0:
            continue
        moves = [
            Action(kind=ActionKind.MOVE, x=20 + 10 * number, y=20).model_dump(mode="json")
            for number in range(missing)
        ]
        update = {"oracle": {**task.oracle, "actions": [*moves, *actions]}, "max_turns": turns}
        padded.append(task.model_copy(update=update))
    return padded[::7]


def measure_resets(socket: Path) -> dict[str, float]:
    """Reset times of one desktop while nothing else runs, as the env worker sees them."""
    from workers.desktops.contract import DesktopSpec
    from workers.desktops.host.client import DeskHostClient, LeaseKeeper
    from workers.desktops.leased_desktop import DesktopEnv

    times = []
    with DeskHostClient(socket) as client:
        lease = client.acquire("x11", DesktopSpec(), holder="benchmark", ttl_s=60)
        keeper, env = LeaseKeeper(client, lease), DesktopEnv(client, lease)
        for _ in range(NUM_RESETS):
            env.agent.launch(["mousepad"])
            env.wait_for_window("Mousepad")
            started = time.monotonic()
            env.reset()
            times.append(time.monotonic() - started)
        keeper.close()
        env.close()
    return {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}


def traces(folder: Path) -> dict[str, list[str]]:
    """What an installation has while it runs: its processes, sockets and desktop folders."""
    ours = [p for p in psutil.process_iter(["pid", "cmdline", "environ"]) if _belongs(p, folder)]
    return {
        "processes": [str(process.pid) for process in ours],
        "sockets": [str(path) for path in folder.rglob("*.sock")],
        "folders": [str(path) for path in (folder / "deskhost" / "d").glob("*/")],
    }


def _belongs(process: psutil.Process, folder: Path) -> bool:
    words = " ".join(process.info["cmdline"] or [])
    environ = process.info["environ"] or {}
    is_ours = str(folder) in words or environ.get("DESKHAND_DATA_DIR") == str(folder)
    return is_ours and process.pid != os.getpid()


def leftover(folder: Path, found: list[str]) -> int:
    """How many of the running installation's traces are still there after it stopped."""
    pids = {
        str(process.pid)
        for process in psutil.process_iter(["cmdline", "environ"])
        if _belongs(process, folder)
    }
    return sum(1 for name in found if (Path(name).exists() if "/" in name else name in pids))


def report(runs: FinishedRuns, found: dict[str, list[dict[str, Any]]]) -> int:
    whole, weak = found.values()
    speed = {arm: statistics.median(run["per_hour"] for run in rows) for arm, rows in found.items()}
    reset = {arm: statistics.median(run["reset_s"]["p50"] for run in rows) for arm, rows in found.items()}
    share = speed["whole"] / speed["without defences"]
    left = {name: sum(run["left"][name] for run in whole) for name in whole[0]["left"]}
    lost = sum(run["asked"] - run["trajectories"] + run["errored"] for run in (*whole, *weak))
    passed = (
        speed["whole"] >= MIN_PER_HOUR
        and share >= MIN_SHARE
        and reset["whole"] <= MAX_RESET_S
        and not any(left.values())
        and not lost
    )
    rows = [
        ("trajectories per hour", round(speed["whole"]), f">= {MIN_PER_HOUR}"),
        ("times the Windows seed's 64 VMs", round(speed["whole"] / PEER_PER_HOUR, 1), ""),
        ("share of the fleet without defences", round(share, 3), f">= {MIN_SHARE}"),
        ("errored or lost", lost, 0),
        ("desktop reset p50, s", round(reset["whole"], 3), f"<= {MAX_RESET_S}"),
        ("the same without defences", round(reset["without defences"], 3), ""),
        *((f"left: {name}", count, 0) for name, count in left.items()),
    ]
    print_table(("figure", "measured", "bar"), rows)
    return runs.finish(
        passed=passed, per_hour=speed, share_of_fleet_without_defences=share, reset_p50_s=reset, left=left
    )


if __name__ == "__main__":
    sys.exit(main())
