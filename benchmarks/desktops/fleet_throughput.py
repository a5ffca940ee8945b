"""Env fleet: how many trajectories of six turns per hour does this machine run with a scripted policy?

Real path: database queue -> Redis -> env workers -> desk host -> X11 desktops -> evaluator -> records.
The peer is the published Windows seed: about 640 trajectories an hour on 64 virtual machines.

Bar: >= 2500 trajectories per hour; desktop reset p50 <= 0.8 s; no process, socket or folder left after
200 trajectories.

    python -m benchmarks.desktops.fleet_throughput [--trajectories 200]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.report import finish, percentile, print_table
from testing.private_installation import Instance
from training.contracts.types import Action, ActionKind, Purpose, Source, Task, TrajectoryStatus
from training.tasks.sets import first_desk

TURNS = 6
MIN_PER_HOUR = 2500
MAX_RESET_S = 0.8
PEER_PER_HOUR = 640
LIMIT_S = 900
NUM_RESETS = 40


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--trajectories", type=int, default=200)
    options = arguments.parse_args()
    with Instance(without=["gpu", "web"]) as deskhand:
        os.environ.update(deskhand.environment)
        figures = measure(options.trajectories)
        figures["reset_s"] = measure_resets(deskhand.folder / "run" / "deskhost.sock")
        before_stop = traces(deskhand.folder)
    figures["left"] = {name: leftover(deskhand.folder, found) for name, found in before_stop.items()}
    return report(figures)


def measure(count: int) -> dict[str, Any]:
    """Queue `count` scripted trajectories at once and wait for the last one."""
    import django

    django.setup()
    from webapp.accounts.models import Team
    from webapp.experiments.models import TaskRecord, TaskSet
    from webapp.trajectories.lifecycle import GroupSpec, create_group
    from webapp.trajectories.models import Trajectory

    team = Team.objects.order_by("pk").first()
    task_set = TaskSet.objects.create(name="six-turns")
    records = [_record(TaskRecord, task_set, task) for task in six_turn_tasks()]
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
        "times_peer": len(turns) / wall_s * 3600 / PEER_PER_HOUR,
    }


def _record(model: Any, task_set: Any, task: Task) -> Any:
    return model.objects.create(
        task_set=task_set,
        task_id=task.task_id,
        instruction=task.instruction,
        family=task.family,
        split=task.split,
        spec=task.model_dump(mode="json"),
    )


def six_turn_tasks() -> list[Task]:
    """First-desk train tasks whose oracle is padded with pointer moves to six turns."""
    padded = []
    for task in first_desk.generate():
        actions = list(task.oracle["actions"])
        missing = TURNS - len(actions)
        if task.split != "train" or missing < 0:
            continue
        moves = [
            Action(kind=ActionKind.MOVE, x=20 + 10 * number, y=20).model_dump(mode="json")
            for number in range(missing)
        ]
        update = {"oracle": {**task.oracle, "actions": [*moves, *actions]}, "max_turns": TURNS}
        padded.append(task.model_copy(update=update))
    return padded[::7]


def measure_resets(socket: Path) -> dict[str, float]:
    """Reset times of one desktop while nothing else runs, as the env worker sees them."""
    from workers.desktops.contract import DesktopSpec
    from workers.desktops.host.client import DeskHostClient
    from workers.desktops.leased_desktop import DesktopEnv

    times = []
    with DeskHostClient(socket) as client:
        lease = client.acquire("x11", DesktopSpec(), holder="benchmark", ttl_s=60)
        env = DesktopEnv(client, lease)
        for _ in range(NUM_RESETS):
            env.agent.launch(["mousepad"])
            env.wait_for_window("Mousepad")
            started = time.monotonic()
            env.reset()
            times.append(time.monotonic() - started)
        env.close()
    return {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}


def traces(folder: Path) -> dict[str, list[str]]:
    """What an installation has while it runs: its processes, sockets and desktop folders."""
    ours = [p for p in psutil.process_iter(["pid", "cmdline", "environ"]) if _belongs(p, folder)]
    return {
        "processes": [str(process.pid) for process in ours],
        "sockets": [str(path) for path in folder.rglob("*.sock")],
        "folders": [str(path) for path in (folder / "deskhost").glob("*/")],
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


def report(figures: dict[str, Any]) -> int:
    reset = figures["reset_s"]
    passed = (
        figures["per_hour"] >= MIN_PER_HOUR
        and reset["p50"] <= MAX_RESET_S
        and not any(figures["left"].values())
        and figures["errored"] == 0
        and figures["trajectories"] == figures["asked"]
    )
    rows = [
        ("trajectories per hour", round(figures["per_hour"]), f">= {MIN_PER_HOUR}"),
        ("times the Windows seed's 64 VMs", round(figures["times_peer"], 1), ""),
        ("turns each", round(figures["turns_each"], 2), TURNS),
        ("errored", figures["errored"], 0),
        ("desktop reset p50, s", round(reset["p50"], 3), f"<= {MAX_RESET_S}"),
        ("desktop reset p95, s", round(reset["p95"], 3), ""),
        ("left: processes", figures["left"]["processes"], 0),
        ("left: sockets", figures["left"]["sockets"], 0),
        ("left: folders", figures["left"]["folders"], 0),
    ]
    print_table(("figure", "measured", "bar"), rows)
    return finish("fleet_throughput", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
