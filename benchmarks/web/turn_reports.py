"""What an env worker's reports of a turn cost: statements to PostgreSQL, commands to Redis, CPU time.

One slot of `toy_worker` (desktop and policy take no time) in this process plays whole trajectories: claim,
screenshots, turns, events and score as they are, against a PostgreSQL and a Redis of its own. CPU time hardly
depends on what else the machine does: to compare two versions, run both in the same minute.

    python -m benchmarks.web.turn_reports [--trajectories 40] [--profile FILE]
"""

from __future__ import annotations

import argparse
import cProfile
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from typing import Any

import psutil

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import commit, finish, print_table
from testing.private_postgres import Cluster, running_cluster
from testing.two_gpu_hosts import redis_on

MAX_TURNS = 15
SKIPPED = 4
"""Trajectories before the count, which open connections and fill caches."""
MAX_STATEMENTS = 12.0
"""17 until 25 November 2026, when it took 15.6."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=40)
    parser.add_argument("--profile", help="file for cProfile's figures, which make all others useless")
    options = parser.parse_args()
    with (
        running_cluster() as cluster,
        redis_on("127.0.0.1") as redis_url,
        tempfile.TemporaryDirectory(prefix="deskhand-turns-") as folder,
    ):
        os.environ.update(DATABASE_URL=cluster.url, REDIS_URL=redis_url, DESKHAND_DATA_DIR=folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        import django

        django.setup()
        figures = measure(cluster, options.trajectories, options.profile)
    rows = [(name, f"{figures[name]:.2f}") for name in figures if name.endswith("_per_turn")]
    print_table(("per turn", "figure"), rows)
    for statement, times in figures["statements"].items():
        print(f"{times:6.2f}  {statement}")
    return finish("turn_reports", figures, passed=figures["statements_per_turn"] <= MAX_STATEMENTS)


def measure(cluster: Cluster, count: int, profile: str | None) -> dict[str, Any]:
    """Of `count` trajectories of MAX_TURNS turns, each with its claim and its score."""
    import redis
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    waiting = queued(SKIPPED + count)
    play(waiting[:SKIPPED])
    store = redis.Redis.from_url(settings.REDIS_URL)
    statements: Counter[str] = Counter()

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        statements[shortened(sql)] += 1
        return execute(sql, *rest)

    commands = store.info("stats")["total_commands_processed"]
    server, began = server_cpu_s(cluster), time.process_time()
    with connection.execute_wrapper(note), cProfile.Profile() if profile else nullcontext() as profiler:
        play(waiting[SKIPPED:])
    used, server_used = time.process_time() - began, server_cpu_s(cluster) - server
    commands = store.info("stats")["total_commands_processed"] - commands - 1
    if profiler:
        profiler.dump_stats(profile)
    turns = count * MAX_TURNS
    return {
        "commit": commit(),
        "num_turns": turns,
        "worker_cpu_ms_per_turn": 1000 * used / turns,
        "postgresql_cpu_ms_per_turn": 1000 * server_used / turns,
        "statements_per_turn": sum(statements.values()) / turns,
        "redis_commands_per_turn": commands / turns,
        "statements": {sql: times / turns for sql, times in statements.most_common()},
        **load_and_speed(),
    }


def queued(count: int) -> list[int]:
    """Trajectories of an experiment whose policy server runs."""
    from testing.factories import make_experiment, make_group, make_task
    from training.contracts.config import parse_config
    from webapp.experiments.models import Attempt, AttemptStatus
    from webapp.trajectories.models import Trajectory

    config = parse_config({"desktops": {"max_turns": MAX_TURNS}}).model_dump(mode="json")
    experiment, task = make_experiment(config=config), make_task()
    Attempt.objects.create(
        experiment=experiment,
        number=1,
        worker_name="gpu@toys",
        status=AttemptStatus.RUNNING,
        policy_url="toy",
    )
    found = []
    for _ in range(count):
        group = make_group(experiment=experiment, task=task, size=1)
        row = Trajectory.objects.create(
            team_id=group.team_id, experiment=experiment, group=group, task=task, family=task.family,
            purpose=group.purpose, source="policy",
        )  # fmt: skip
        found.append(row.pk)
    return found


def play(trajectories: list[int]) -> None:
    """As the env job does. Raises RuntimeError when one was not scored."""
    import testing.workers.toy_worker  # noqa: F401  (toys instead of desktops and policy)
    from webapp.trajectories.models import Trajectory
    from workers.env import trajectory_job

    for pk in trajectories:
        trajectory_job.run(pk)
    wrong = Trajectory.objects.filter(pk__in=trajectories).exclude(status="truncated", num_turns=MAX_TURNS)
    if row := wrong.first():
        raise RuntimeError(f"trajectory {row.pk} is {row.status} after {row.num_turns} turns: {row.error}")


def server_cpu_s(cluster: Cluster) -> float:
    """Of all its processes, with those that ended."""
    server = psutil.Process(int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0]))
    times = [server.cpu_times(), *(one.cpu_times() for one in server.children(recursive=True))]
    return sum(one.user + one.system for one in times) + times[0].children_user + times[0].children_system


def shortened(sql: str) -> str:
    """Its first words, which tell statements apart."""
    words = " ".join(sql.split())
    if "SAVEPOINT" in words:
        return words.partition(' "')[0]  # each has a name of its own
    if words.startswith("SELECT"):
        start = words.find(" FROM ")
        return f"SELECT ...{words[start : start + 90]}"
    return words[:90]


if __name__ == "__main__":
    sys.exit(main())
