"""A thousand slots of forty env workers: what database, Redis, dispatcher and web take, and where it ends.

Real: PostgreSQL (durable, 100 connections), Redis, `manage.py up`'s web and dispatcher, Celery, claims, turns
with screenshots, heartbeats, mirrors of 1 000 desktops on 40 hosts, events. Toys: desktops, and a policy that
takes `slots / rate` seconds a turn, so that a slot makes as many turns a second as the bar asks of each.
A driver keeps as many trajectories open as there are slots, as a trainer does.

Bar at 1 000 slots, on two cores: 300 turns/s sustained, dispatch (queued -> claimed) p95 <= 1 s, at most 100
connections, fleet page <= 150 ms. With the machine's load, and the CPU seconds that a turn takes of each
process, which other programs hardly change. Before any slot is wanted: what a host costs that does nothing.

Until 25 Nov 2026 the first task's own limit held: trajectories had 4 turns instead of 15, and a turn bore
four times as much of their claim, score and dispatch. `--turns 4` measures that still.

    python -m benchmarks.web.thousand_desktops [--slots 100,250,500,1000] [--seconds 60] [--turns 15]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
import psutil

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, percentile, print_table
from benchmarks.web.cpu_by_kind import cpu_by_kind, idle_host
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.private_postgres import Cluster, running_cluster

NUM_WORKERS, NUM_SLOTS = 40, 1000
RATE = 300.0
MAX_TURNS = 15
GROUP = 8
MOST_CONNECTIONS = 100
NUM_EXPERIMENTS = 4
WARM_UP_S = 20.0
START_S = 600.0
BARS = {"turns_per_s": 0.99 * RATE, "dispatch_p95_s": 1.0, "fleet_page_p95_ms": 150.0}


@contextmanager
def toy_workers(env: dict[str, str], num_workers: int, slots: int, turn_s: float) -> Iterator[None]:
    """Env workers, each of a host of its own."""
    env = {**env, "TOY_TURN_S": str(turn_s), "DESKHAND_LOG_LEVEL": "WARNING"}
    processes = []
    with (Path(env["DESKHAND_DATA_DIR"]) / "toys.log").open("ab") as output:
        for number in range(num_workers):
            command = [sys.executable, "-m", "celery", "-q", "-A", "testing.workers.toy_worker", "worker"]
            command += ["-Q", "env", "-n", f"env@toy{number:02}", "--pool=threads"]
            command += [f"--concurrency={slots // num_workers}", "--without-gossip", "--without-mingle"]
            command += ["--without-heartbeat", "--loglevel", "WARNING"]
            processes.append(subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=output, stderr=output))
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


class Driver:
    """Keeps `wanted` trajectories open, and its experiments alive, as gpu workers do."""

    def __init__(self, max_turns: int) -> None:
        from training.contracts.config import ExperimentConfig
        from webapp.accounts.models import Team
        from webapp.experiments.models import Attempt, AttemptStatus, Experiment, ExperimentStatus, TaskRecord

        config = ExperimentConfig.model_validate(
            {"desktops": {"num_desktops": NUM_SLOTS // NUM_EXPERIMENTS, "max_turns": max_turns}}
        )
        team = Team.objects.order_by("pk").first()
        assert team is not None
        self.task = TaskRecord.objects.earliest("pk")
        self.task.spec |= {"max_turns": max_turns}  # its own would win over the config's
        self.task.save()
        self.experiments = [
            Experiment.objects.create(
                team=team, name=f"toys {number}", config=config.model_dump(mode="json"),
                status=ExperimentStatus.RUNNING, heartbeat_at=datetime.now(UTC),
            )
            for number in range(NUM_EXPERIMENTS)
        ]  # fmt: skip
        for row in self.experiments:
            Attempt.objects.create(
                experiment=row,
                number=1,
                worker_name="gpu@toys",
                status=AttemptStatus.RUNNING,
                policy_url="toy",
            )
        self.wanted = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._forever, daemon=True)

    def __enter__(self) -> Driver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _forever(self) -> None:
        from webapp.experiments.services.attempts import beat_experiment

        beat_due = 0.0
        while not self._stopping.wait(0.2):
            for row in self.experiments:
                self._top_up(row)
                if time.monotonic() > beat_due:
                    beat_experiment(row.pk)
            beat_due = beat_due if time.monotonic() < beat_due else time.monotonic() + 2

    def _top_up(self, experiment: Any) -> None:
        from training.contracts.types import Purpose
        from webapp.trajectories.models import Trajectory
        from webapp.trajectories.services.groups import GroupSpec, create_group

        missing = self.wanted // NUM_EXPERIMENTS
        missing -= Trajectory.objects.filter(experiment=experiment, ended_at=None).count()
        while missing > 0:
            size = min(GROUP, missing)
            spec = GroupSpec(task=self.task, size=size, purpose=Purpose.TRAIN, step=1)
            create_group(request=spec, team_id=experiment.team_id, experiment=experiment, attempt=1)
            missing -= size


class Watch:
    """Connections and the fleet page, looked at while the window lasts; CPU before and after."""

    def __init__(self, deskhand: Instance, cluster: Cluster, cookies: Any) -> None:
        self._deskhand, self._cluster, self._cookies = deskhand, cluster, cookies
        self.connections: list[int] = []
        self.page_ms: list[float] = []
        self.page_bytes = 0

    def during(self, seconds: float) -> dict[str, float]:
        """CPU seconds of each kind of process."""
        import httpx

        before = cpu_by_kind(self._deskhand.folder, self._cluster)
        ends = time.monotonic() + seconds
        with httpx.Client(base_url=self._deskhand.url, cookies=self._cookies, timeout=60) as http:
            http.get("/fleet/")
            while time.monotonic() < ends:
                self.connections.append(count_connections())
                started = time.perf_counter()
                answer = http.get("/fleet/").raise_for_status()
                self.page_ms.append((time.perf_counter() - started) * 1000)
                self.page_bytes = len(answer.content)
                time.sleep(min(2.0, max(0.0, ends - time.monotonic())))
        after = cpu_by_kind(self._deskhand.folder, self._cluster)
        return {kind: after[kind] - before[kind] for kind in after}


def count_connections() -> int:
    """To the database, the driver's and this one's not counted."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name <> 'driver'"
        )
        return int(cursor.fetchone()[0])


def measure(watch: Watch, driver: Driver, slots: int, seconds: float) -> dict[str, Any]:
    """One point of the curve."""
    from webapp.trajectories.models import Trajectory, TurnRecord

    driver.wanted = slots
    time.sleep(WARM_UP_S)
    busy_before = psutil.cpu_times()
    began = datetime.now(UTC)
    cpu = watch.during(seconds)
    ended = datetime.now(UTC)
    busy = psutil.cpu_times()
    took_s = (ended - began).total_seconds()
    turns = TurnRecord.objects.filter(completed_at__gt=began, completed_at__lte=ended).count()
    claimed = Trajectory.objects.filter(started_at__gt=began, started_at__lte=ended)
    times = claimed.values_list("created_at", "started_at")
    waits = [(started - made).total_seconds() for made, started in times]
    lost = Trajectory.objects.filter(ended_at__gt=began, status="errored").count()
    others = sum(busy[:3]) - sum(busy_before[:3]) - sum(cpu.values())
    return {
        "slots": slots,
        "turns_per_s": turns / took_s,
        "offered_per_s": RATE * slots / NUM_SLOTS,
        "num_turns": turns,
        "dispatch_p50_s": percentile(waits, 0.5) if waits else None,
        "dispatch_p95_s": percentile(waits, 0.95) if waits else None,
        "num_dispatched": len(waits),
        "num_errored": lost,
        "most_connections": max(watch.connections),
        "fleet_page_p50_ms": percentile(watch.page_ms, 0.5),
        "fleet_page_p95_ms": percentile(watch.page_ms, 0.95),
        "fleet_page_bytes": watch.page_bytes,
        "cpu_ms_per_turn": {kind: 1000 * used / max(turns, 1) for kind, used in sorted(cpu.items())},
        "cpu_ms_per_turn_in_all": 1000 * sum(cpu.values()) / max(turns, 1),
        "cores_of_other_programs": others / took_s,
        **load_and_speed(),
    }


def run(options: argparse.Namespace) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """What an idle host costs, and the curve."""
    points = [int(one) for one in options.slots.split(",")]
    with (
        running_cluster(is_durable=True) as cluster,
        Instance(without=["gpu", "env", "deskhost"], env={"DATABASE_URL": cluster.url}) as deskhand,
    ):
        env = deskhand.environment
        os.environ.update(env | {"DESKHAND_DB_POOL": "0", "PGAPPNAME": "driver"})
        django.setup()
        cookies = sign_in()
        with toy_workers(env, options.workers, NUM_SLOTS * options.workers // NUM_WORKERS, NUM_SLOTS / RATE):
            wait_for_workers(options.workers)
            time.sleep(WARM_UP_S)
            idle = idle_host(deskhand.folder, cluster, options.workers)
            with Driver(options.turns) as driver:
                stage = (deskhand, cluster, cookies)
                return idle, [measure(Watch(*stage), driver, slots, options.seconds) for slots in points]


def sign_in() -> dict[str, str]:
    """The session cookie of the first login."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(is_superuser=True), "webapp.accounts.member_backend.MemberBackend")
    return {settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value}


def wait_for_workers(count: int) -> None:
    from django.utils import timezone

    from webapp.fleet.models import Desktop, Worker

    deadline = time.monotonic() + START_S
    while True:
        lately = timezone.now() - timedelta(seconds=10)
        found = Worker.objects.filter(queue="env", heartbeat_at__gt=lately).count()
        if found >= count and Desktop.objects.count() >= NUM_SLOTS // NUM_WORKERS * count:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} of {count} env workers after {START_S:g} s")
        time.sleep(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", default="100,250,500,1000", help="points of the curve")
    parser.add_argument("--workers", type=int, default=NUM_WORKERS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--turns", type=int, default=MAX_TURNS, help="of each trajectory")
    options = parser.parse_args()
    idle, points = run(options)
    columns = {
        "slots": "slots",
        "turns/s": "turns_per_s",
        "offered": "offered_per_s",
        "dispatch p95 s": "dispatch_p95_s",
        "connections": "most_connections",
        "fleet p95 ms": "fleet_page_p95_ms",
        "CPU ms/turn": "cpu_ms_per_turn_in_all",
        "load": "load",
    }
    print_table(list(columns), [[f"{point[key] or 0:.4g}" for key in columns.values()] for point in points])
    print("an idle host, ms of CPU a second:", ", ".join(f"{kind} {ms:.2f}" for kind, ms in idle.items()))
    last = points[-1]
    passed = last["slots"] == NUM_SLOTS and last["most_connections"] <= MOST_CONNECTIONS
    passed = passed and last["turns_per_s"] >= BARS["turns_per_s"] and not last["num_errored"]
    passed = passed and all(last[name] <= BARS[name] for name in ("dispatch_p95_s", "fleet_page_p95_ms"))
    figures = {"workers": options.workers, "turns": options.turns}
    figures |= {"idle_host_cpu_ms_per_s": idle, "curve": points}
    return finish("thousand_desktops", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
