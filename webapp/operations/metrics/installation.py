"""All figures together, and those of the installation itself: queues, dispatcher, disks, database."""

import shutil
import time
from collections.abc import Iterator

from django.db import connection
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from webapp import __version__
from webapp.dispatcher.models import last_beat
from webapp.fleet.models import Worker, WorkerStatus
from webapp.lib.disk_room import Kept, folders_of, nearest_existing, shortages
from webapp.lib.send_job import own_queue
from webapp.operations.metrics.families import Rows, gauge
from webapp.operations.metrics.machines import machine_metrics
from webapp.operations.metrics.training_runs import training_metrics
from webapp.operations.metrics.work import work_metrics
from webapp.operations.redis_state import queue_lengths


class InstallationCollector(Collector):
    """Reads everything anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        started = time.monotonic()
        yield gauge("build_info", "1; the label says which version.", {(__version__,): 1.0}, "version")
        yield from work_metrics()
        yield from machine_metrics()
        yield from training_metrics()
        yield from _queues()
        yield from _dispatcher()
        yield from _disks()
        yield from _database()
        yield gauge("scrape_seconds", "What reading all this took.", time.monotonic() - started)

    def describe(self) -> list[Metric]:
        """Nothing: else it would be collected once when it is registered."""
        return []


def _queues() -> Iterator[Metric]:
    online = Worker.objects.filter(status=WorkerStatus.ONLINE).values_list("queue", "host", "name")
    own = {own_queue(queue, host if queue == "env" else name) for queue, host, name in online}
    lengths = queue_lengths(["env", "gpu", *sorted(own)])
    yield gauge("redis_up", "1 while Redis answers.", float(lengths is not None))
    rows = {(name,): float(length) for name, length in (lengths or {}).items()}
    yield gauge("queue_jobs", "Jobs that were sent and that no worker has fetched yet.", rows, "queue")


def _dispatcher() -> Iterator[Metric]:
    beat = last_beat()
    age: Rows = {(): beat[0].total_seconds()} if beat else {}
    tick: Rows = {(): beat[1]} if beat else {}
    yield gauge("dispatcher_silent_seconds", "Since the dispatcher was last seen.", age)
    yield gauge("dispatcher_tick_seconds", "Its longest tick in the last 2 s.", tick)


def _disks() -> Iterator[Metric]:
    short = {shortage.kept for shortage in shortages()}
    free: dict[tuple[str, ...], float] = {}
    for kept in Kept:
        usages = [shutil.disk_usage(nearest_existing(folder)).free for folder in folders_of(kept)]
        if usages:
            free[kept,] = min(usages)
    yield gauge("disk_free_bytes", "Free where the web process keeps it.", free, "kept")
    rows: Rows = {(kept,): float(kept in short) for kept in Kept}
    yield gauge("disk_short", "1 while new work waits for room on this disk.", rows, "kept")


def _database() -> Iterator[Metric]:
    rows: dict[tuple[str, ...], float] = {}
    limit: Rows = {}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT coalesce(state, 'unknown'), count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() GROUP BY 1"
            )
            rows = {(str(state),): float(number) for state, number in cursor.fetchall()}
            cursor.execute("SHOW max_connections")
            limit = {(): float(cursor.fetchone()[0])}
    yield gauge("database_connections", "Connections to our PostgreSQL database.", rows, "state")
    yield gauge("database_max_connections", "The most that the PostgreSQL server takes.", limit)
