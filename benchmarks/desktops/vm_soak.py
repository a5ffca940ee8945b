"""Virtual machines under load: eight QEMU desktops at once, a hundred trajectories of real tasks.

Real path: database queue -> Redis -> env workers -> desk host -> QEMU clones of task templates -> evaluator
-> records, with the tasks' scripted oracle. Everything is made in the run: the cold boot, the templates.

Bars: no trajectory errored, every one scored 1; afterwards no process, port, socket, overlay or folder is
left. Memory of each further machine is reported.

    python -m benchmarks.desktops.vm_soak [--trajectories 100] [--images DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.desktops.fleet_throughput import leftover, traces
from benchmarks.desktops.vm_clone import default_images
from benchmarks.kept_running import keep_running
from benchmarks.report import finish, percentile, print_table
from testing.private_installation import Instance
from training.content.task_sets import first_desk
from training.contracts.config import ExperimentConfig
from training.contracts.types import Purpose, Source, Task, TrajectoryStatus

DESKTOPS = 8
LIMIT_S = 3000
SAMPLE_S = 5.0
TRAJECTORY_LIMIT_S = 600


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--trajectories", type=int, default=100)
    arguments.add_argument("--images", type=Path, default=default_images())
    options = arguments.parse_args()
    environment = {"DESKHAND_IMAGES_DIR": str(options.images)}
    with Instance(without=["gpu", "web"], slots=DESKTOPS, env=environment) as deskhand:
        os.environ.update(deskhand.environment)
        socket = deskhand.folder / "run" / "deskhost.sock"
        figures = measure(options.trajectories, socket)
        before_stop = traces(deskhand.folder)
        before_stop["overlays"] = [str(path) for path in (deskhand.folder / "deskhost").rglob("*.qcow2")]
        before_stop["ports"] = ports_of(deskhand.folder)
    figures["there"] = {name: len(found) for name, found in before_stop.items()}
    ports = before_stop.pop("ports")
    figures["left"] = {name: leftover(deskhand.folder, found) for name, found in before_stop.items()}
    figures["left"]["ports"] = len(set(ports) & set(listening()))
    return report(figures)


def measure(count: int, socket: Path) -> dict[str, Any]:
    """Queue `count` trajectories of an experiment on QEMU desktops at once and wait for the last one."""
    import django

    django.setup()
    from webapp.experiments.models import TaskRecord, TaskSet
    from webapp.trajectories.models import Trajectory
    from webapp.trajectories.services.groups import GroupSpec, create_group

    experiment = running_experiment()
    task_set = TaskSet.objects.create(name="soak")
    records = TaskRecord.objects.bulk_create(
        TaskRecord.made_from(task, task_set=task_set) for task in tasks()
    )
    started = time.monotonic()
    for record in records:
        size = count // len(records) + (record is records[0]) * (count % len(records))
        request = GroupSpec(task=record, size=size, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
        create_group(request=request, team_id=experiment.team_id, experiment=experiment)
    rows = Trajectory.objects.filter(task__task_set=task_set)
    memory = Memory(socket)
    while rows.filter(ended_at=None).exists():
        if time.monotonic() - started > LIMIT_S:
            raise TimeoutError(f"{rows.filter(ended_at=None).count()} trajectories left after {LIMIT_S} s")
        memory.sample()
        time.sleep(SAMPLE_S)
    wall_s = time.monotonic() - started
    errored = list(rows.filter(status=TrajectoryStatus.ERRORED).values_list("error_kind", "error"))
    return {
        "asked": count,
        "solved": rows.filter(score=1.0).count(),
        "errored": len(errored),
        "errors": [" ".join(map(str, error))[:300] for error in errored[:5]],
        "wall_s": wall_s,
        "first_frames": first_frames(rows),
        "tasks": len(records),
        **memory.figures(),
    }


def running_experiment() -> Any:
    """A record that only says which desktops to use; nothing trains."""
    from django.utils import timezone

    from webapp.accounts.models import Team
    from webapp.experiments.models import Experiment

    desktops = {
        "provider": "qemu",
        "num_desktops": DESKTOPS,
        "trajectory_timeout_s": TRAJECTORY_LIMIT_S,
        "retries": 0,
    }
    experiment = Experiment.objects.create(
        team=Team.objects.order_by("pk").first(),
        name="soak",
        config=ExperimentConfig(desktops=desktops).model_dump(mode="json"),  # type: ignore[arg-type]
        status="running",
        started_at=timezone.now(),
        heartbeat_at=timezone.now(),
    )
    keep_running((experiment.pk,))
    return experiment


def tasks() -> list[Task]:
    """The first train task of each family."""
    found: dict[str, Task] = {}
    for task in first_desk.generate():
        if task.split == "train":
            found.setdefault(task.family, task)
    return list(found.values())


def first_frames(rows: Any) -> dict[str, int]:
    """Different first frames per task: 1 = all its trajectories started from the same picture."""
    from webapp.trajectories.models import TurnRecord

    seen: dict[str, set[str]] = {}
    turns = TurnRecord.objects.filter(trajectory__in=rows, index=0)
    for task_id, sha in turns.values_list("trajectory__task__task_id", "frame"):
        seen.setdefault(task_id, set()).add(sha)
    return {task_id: len(shas) for task_id, shas in seen.items()}


class Memory:
    """Machines at once, and the memory that each one has for itself."""

    def __init__(self, socket: Path) -> None:
        from workers.desktops.host.client import DeskHostClient

        self._client = DeskHostClient(socket)
        self._private: list[float] = []
        self._totals: list[float] = []
        self.most_at_once = 0
        self.resets = 0

    def sample(self) -> None:
        desktops = self._client.list()
        own = [mb for desktop in desktops if desktop.pid and (mb := private_mb(desktop.pid))]
        self._private += own
        if len(own) >= self.most_at_once:
            self.most_at_once = len(own)
            self._totals.append(sum(own))
        self.resets = max(self.resets, sum(desktop.resets for desktop in desktops))

    def figures(self) -> dict[str, Any]:
        return {
            "most_at_once": self.most_at_once,
            "private_mb": {"p50": percentile(self._private, 0.5), "max": max(self._private)},
            "all_private_mb": max(self._totals),
        }


def private_mb(pid: int) -> float:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).memory_full_info().uss / (1 << 20)
    return 0.0


def ports_of(folder: Path) -> list[str]:
    """Ports on which this installation's machines listen."""
    return [port for port, pid in listening().items() if pid and str(folder) in " ".join(_command_line(pid))]


def listening() -> dict[str, int | None]:
    """address:port -> pid of whoever listens there."""
    return {
        f"{found.laddr.ip}:{found.laddr.port}": found.pid
        for found in psutil.net_connections("tcp")
        if found.status == psutil.CONN_LISTEN
    }


def _command_line(pid: int) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).cmdline()
    return []


def report(figures: dict[str, Any]) -> int:
    left = figures["left"]
    passed = (
        figures["solved"] == figures["asked"]
        and figures["errored"] == 0
        and figures["most_at_once"] >= DESKTOPS
        and not any(left.values())
        and all(count == 1 for count in figures["first_frames"].values())
    )
    rows = [
        ("trajectories solved", figures["solved"], figures["asked"]),
        ("errored", figures["errored"], 0),
        ("machines at once", figures["most_at_once"], f">= {DESKTOPS}"),
        ("different first frames per task", max(figures["first_frames"].values()), 1),
        ("wall time with cold boot and templates, s", round(figures["wall_s"]), ""),
        ("trajectories per hour", round(figures["solved"] / figures["wall_s"] * 3600), ""),
        ("memory of one further machine p50, MB", round(figures["private_mb"]["p50"]), ""),
        ("memory of one further machine max, MB", round(figures["private_mb"]["max"]), ""),
        ("all machines together, MB", round(figures["all_private_mb"]), ""),
        *((f"left: {name} (of {figures['there'][name]})", count, 0) for name, count in left.items()),
    ]
    print_table(("figure", "measured", "bar"), rows)
    for error in figures["errors"]:
        print("error:", error)
    return finish("vm_soak", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
