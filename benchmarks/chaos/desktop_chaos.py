"""Chaos: everything around a trajectory dies or is cut off while scripted trajectories run. Is any lost?

Real path: database queue -> Redis -> env workers -> desk host -> desktops -> evaluator -> records. The policy
is the task's oracle, so every trajectory that infrastructure leaves alone scores 1; whatever scores less was
spoiled. A network is cut by taking down the link of a network namespace; what hangs is made by SIGSTOP:
nothing answers, nothing is refused, and after a while it comes back as if nothing had happened. The host's
disk is a small file system of its own. Both need root; the database is a PostgreSQL of the run's own.

Bar, for every fault (struck again when it hit nothing): each place of each group ends with exactly one
scored trajectory, of score 1; what the fault hit is errored, without a reward, and was run again; leases and
desktops that were hit are gone within a lease time (15 s; twice that where a silence has to be noticed
first); nothing is left afterwards.

    python -m benchmarks.chaos.desktop_chaos [--trajectories 8] [--only PATTERN] [--images DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import time
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.chaos.faults import FAULTS, Fault, NothingRuns, World, is_reaped, restore_later
from benchmarks.chaos.remote_parts import Far
from benchmarks.desktops.fleet_throughput import leftover, padded_tasks, traces
from benchmarks.report import RESULTS, finish, print_table
from testing.linked_network import Network, network
from testing.private_installation import Instance
from testing.private_postgres import private_cluster
from testing.small_disk import NoGround, small_ext4
from training.contracts.config import ExperimentConfig
from training.contracts.types import Purpose, Source, TrajectoryStatus
from workers.desktops.host.client import DeskHostClient

DISK_MB = 3500  # sparse; machines leave 2 GB free
TURNS = {"qemu": 7}
"""Long enough to be hit in the middle; a machine's turns are slower."""
OTHER_TURNS = 14
LIMIT_S = 900
REAP_WATCH_S = 240
MOST_STRIKES = 4
HEADER = [
    *("fault", "desktops", "places", "errored", "kinds", "run again"),
    *("score 1", "spoiled", "lost", "reaped s", "limit s", "passed"),
]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--trajectories", type=int, default=8, help="places per fault")
    arguments.add_argument("--only", default="", help="faults whose name this pattern finds; saves nothing")
    arguments.add_argument("--images", type=Path, default=Path("var/images"), help="machines' base images")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    if not (options.images / "debian-desk").exists():
        arguments.error(f"--images: there is no debian-desk in {options.images}; run `make guest-image`")
    faults = [fault for fault in FAULTS if re.search(options.only, fault.name)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unmounts, and ends what it started
    started = time.monotonic()
    try:
        figures = run_all(faults, options)
    except NoGround as exc:
        sys.stderr.write(
            f"desktop_chaos: {exc}\nIt has to run as root, with iproute2 and e2fsprogs installed.\n"
        )
        return 2
    figures["wall_s"] = round(time.monotonic() - started, 1)
    return report(figures, options.results, is_whole=not options.only)


def run_all(faults: list[Fault], options: argparse.Namespace) -> dict[str, Any]:
    """Every fault on one installation. Raises NoGround."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        link = stack.enter_context(network())
        database = stack.enter_context(private_cluster(address=link.near, clients=f"{link.far}/32"))
        deskhand = Instance(without=["gpu", "web"], slots=6, env={"DATABASE_URL": database})
        stack.callback(shutil.rmtree, deskhand.folder, ignore_errors=True)
        stack.enter_context(small_ext4(deskhand.folder / "deskhost" / "d", DISK_MB))
        (deskhand.folder / "images").symlink_to(options.images.resolve())
        with deskhand:
            os.environ.update(deskhand.environment)
            chaos = Chaos(deskhand, link)
            for fault in faults:
                rows.append(chaos.run_until_hit(fault, min(options.trajectories, fault.most_places)))
                print(rows[-1], flush=True)
            leaks = chaos.leaks_at_rest()
            before_stop = traces(deskhand.folder)
    left = {name: leftover(deskhand.folder, found) for name, found in before_stop.items()}
    return {"faults": rows, "leaks_at_rest": leaks, "left": left}


class Chaos:
    """Runs the faults one after another on one installation."""

    def __init__(self, deskhand: Instance, link: Network) -> None:
        import django

        django.setup()
        from webapp.accounts.models import Team

        self.team = Team.objects.order_by("pk").first()
        self.world = World(
            deskhand.folder,
            deskhand.redis_port,
            DeskHostClient(deskhand.folder / "run" / "deskhost.sock"),
            self.busy,
            self.is_going,
            deskhand.folder / "deskhost" / "d",
            Far(deskhand.folder, link, deskhand.environment, deskhand.redis_port, self.worker_names),
        )

    @staticmethod
    def busy() -> set[str]:
        from webapp.trajectories.models import Trajectory

        rows = Trajectory.objects.filter(status=TrajectoryStatus.RUNNING, num_turns__gte=2)
        return set(rows.values_list("desktop__name", flat=True))

    @staticmethod
    def worker_names() -> list[str]:
        from webapp.fleet.models import Worker, WorkerStatus

        return list(Worker.objects.filter(status=WorkerStatus.ONLINE).values_list("name", flat=True))

    @staticmethod
    def is_going() -> bool:
        from webapp.trajectories.models import Group

        return Group.objects.filter(finished_at=None).exists()

    def run_until_hit(self, fault: Fault, count: int) -> dict[str, Any]:
        """A strike that came between two trajectories proves nothing: once more then."""
        with fault.ground(self.world) if fault.ground else nullcontext({}) as knobs:
            for _ in range(MOST_STRIKES):
                result = self.run(fault, count, knobs)
                if result["errored"] or not fault.must_hit:
                    return result
        result["passed"] = False
        return result

    def run(self, fault: Fault, count: int, knobs: dict[str, Any]) -> dict[str, Any]:
        """Queue `count` places, strike while they run, wait until all are final and the fault is over."""
        from webapp.trajectories.models import Group

        experiment = self.make_experiment(fault, knobs)
        self.queue(experiment, count)
        started = time.monotonic()
        groups = Group.objects.filter(experiment=experiment)
        try:
            strike = fault.strike(self.world)
        except NothingRuns:
            return self.outcome(fault, experiment, count, 0.0)
        struck = time.monotonic()
        is_back = restore_later(strike)
        reaped_s: float | None = None
        while groups.filter(finished_at=None).exists() or reaped_s is None or not is_back():
            if reaped_s is None and is_reaped(self.world, strike):
                reaped_s = time.monotonic() - struck
            if time.monotonic() - started > LIMIT_S or (is_back() and self.has_missed(fault, groups)):
                break
            if reaped_s is None and time.monotonic() - struck > REAP_WATCH_S:
                reaped_s = REAP_WATCH_S
            time.sleep(0.25)
        return self.outcome(fault, experiment, count, LIMIT_S if reaped_s is None else reaped_s)

    @staticmethod
    def has_missed(fault: Fault, groups: Any) -> bool:
        """Everything is over and nothing was hit: what was struck had just finished, and nobody needs it."""
        if not fault.must_hit or groups.filter(finished_at=None).exists():
            return False
        return not groups.filter(trajectories__status=TrajectoryStatus.ERRORED).exists()

    def make_experiment(self, fault: Fault, knobs: dict[str, Any]) -> Any:
        """Not for the gpu worker: it only carries the config that its trajectories run with."""
        from webapp.experiments.models import Experiment, ExperimentStatus

        desktops = {"provider": fault.provider, "num_desktops": 6} | knobs
        if fault.provider == "qemu":
            desktops |= {"num_desktops": 3, "trajectory_timeout_s": 600}
        config = ExperimentConfig.model_validate({"desktops": desktops})
        return Experiment.objects.create(
            team=self.team,
            name=fault.name,
            status=ExperimentStatus.PAUSED,
            config=config.model_dump(mode="json"),
            queue_order=0,
        )

    def queue(self, experiment: Any, count: int) -> None:
        from webapp.experiments.models import TaskRecord, TaskSet
        from webapp.trajectories.services.groups import GroupSpec, create_group

        turns = TURNS.get(experiment.config["desktops"]["provider"], OTHER_TURNS)
        task_set, is_new = TaskSet.objects.get_or_create(name=f"{turns} turns")
        if is_new:
            TaskRecord.objects.bulk_create(
                TaskRecord.made_from(task, task_set=task_set) for task in padded_tasks(turns)
            )
        tasks = task_set.tasks.order_by("pk")
        for _, task in zip(range(count), cycle(tasks), strict=False):
            request = GroupSpec(task=task, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
            create_group(request=request, team_id=self.team.pk, experiment=experiment)

    def outcome(self, fault: Fault, experiment: Any, count: int, reaped_s: float) -> dict[str, Any]:
        """The row of the table."""
        from django.db.models import Q

        from webapp.trajectories.models import Trajectory

        rows = Trajectory.objects.filter(experiment=experiment)
        errored = rows.filter(status=TrajectoryStatus.ERRORED)
        scored = Q(status__in=(TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED))
        good = rows.filter(scored, score=1.0)
        result = {
            "fault": fault.name,
            "desktops": fault.provider,
            "places": count,
            "errored": errored.count(),
            "kinds": sorted(set(errored.values_list("error_kind", flat=True))),
            "run_again": errored.exclude(retries=None).distinct().count(),
            "score_1": good.count(),
            "places_with_score_1": good.values("group").distinct().count(),
            "spoiled": rows.filter(scored).exclude(score=1.0).count(),
            "errored_with_reward": errored.exclude(reward=None).count(),
            "lost": count - rows.filter(scored).values("group").distinct().count(),
            "reaped_s": round(reaped_s, 1),
            "limit_s": fault.reap_limit_s,
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        result["passed"] = (
            result["score_1"] == result["places_with_score_1"] == count
            and result["spoiled"] == result["lost"] == result["errored_with_reward"] == 0
            and result["run_again"] == result["errored"]
            and reaped_s <= fault.reap_limit_s
        )
        return result

    def leaks_at_rest(self) -> int:
        """What the desk host's own watch counts once everything has calmed down (two looks of 5 s)."""
        time.sleep(15)
        leaks = self.world.client.watch().leaks
        print("leaks at rest:", [leak.model_dump() for leak in leaks])
        return len(leaks)


def report(figures: dict[str, Any], results: Path, *, is_whole: bool) -> int:
    rows, leaks, left = figures["faults"], figures["leaks_at_rest"], figures["left"]
    table = [
        (
            row["fault"], row["desktops"], row["places"], row["errored"], " ".join(row["kinds"]) or "-",
            row["run_again"], row["score_1"], row["spoiled"], row["lost"], row["reaped_s"], row["limit_s"],
            "yes" if row["passed"] else "NO",
        )
        for row in rows
    ]  # fmt: skip
    print_table(HEADER, table)
    print(f"leaks counted by the desk host at rest: {leaks}; left after the stop: {left}")
    print(f"{figures['wall_s']:.0f} s")
    passed = all(row["passed"] for row in rows) and leaks == 0 and not any(left.values())
    if not is_whole:
        return 0 if passed else 1
    return finish("desktop_chaos", figures, passed=passed, results=results)


if __name__ == "__main__":
    sys.exit(main())
