"""Figures of the machines: workers, desktops, hosts."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, Q, Sum
from django.utils import timezone
from prometheus_client.core import Metric

from webapp.fleet.models import Desktop, DesktopPhase, Host, Worker, WorkerStatus
from webapp.fleet.queries.history import samples_since, width_s
from webapp.operations.metrics.families import Rows, counter, gauge

HOUR = timedelta(hours=1)
DRAINING = "draining"


def machine_metrics() -> Iterator[Metric]:
    """Four queries."""
    yield from _workers()
    yield _desktops()
    yield from _hosts()
    yield _desktops_in_use()


def _workers() -> Iterator[Metric]:
    workers: dict[tuple[str, ...], float] = {
        (queue, status): 0.0 for queue in ("env", "gpu") for status in (*WorkerStatus.values, DRAINING)
    }
    slots = 0.0
    lately = Q(status=WorkerStatus.ONLINE) | Q(heartbeat_at__gt=timezone.now() - HOUR)
    rows = Worker.objects.filter(lately).order_by().values_list("queue", "status", "is_draining")
    for queue, status, is_draining, number, num_slots in rows.annotate(Count("pk"), Sum("slots")):
        is_online = status == WorkerStatus.ONLINE
        key = queue, DRAINING if is_online and is_draining else status
        workers[key] = workers.get(key, 0) + number
        if queue == "env" and is_online and not is_draining:
            slots += num_slots
    yield gauge("workers", "Workers; of those that left, the ones of an hour.", workers, "queue", "status")
    yield gauge("env_slots", "Trajectories that the env workers can run at once.", slots)


def _desktops() -> Metric:
    rows = Desktop.objects.exclude(phase=DesktopPhase.GONE).order_by()
    counts = rows.values_list("provider", "phase").annotate(Count("pk"))
    found = {(provider, phase): float(number) for provider, phase, number in counts}
    return gauge("desktops", "Desktops by phase.", found, "provider", "phase")


def _hosts() -> Iterator[Metric]:
    hosts = list(Host.objects.filter(heartbeat_at__gt=timezone.now() - HOUR))

    def of_each(column: str, factor: float = 1.0) -> Rows:
        return {(host.name,): factor * getattr(host, column) for host in hosts}

    yield gauge(
        "host_up", "1 while the desk host answers.", {(h.name,): float(not h.problem) for h in hosts}, "host"
    )
    text = "Resets of desktops since the desk host started."
    yield counter("desktop_resets", text, of_each("num_resets"), "host")
    text = "Desktops that broke since the desk host started."
    yield counter("desktop_failures", text, of_each("num_failures"), "host")
    resets = {
        (host.name, quantile): float(seconds)
        for host in hosts
        for quantile, seconds in (("0.5", host.reset_p50_s), ("0.99", host.reset_p99_s))
    }
    text = "Time of a reset in the last minute, 0 without one."
    yield gauge("desktop_reset_seconds", text, resets, "host", "quantile")
    leaks = {(host.name,): float(len(host.leaks)) for host in hosts}
    yield gauge("desktop_leaks", "Desktops that no book accounts for; has to stay 0.", leaks, "host")
    yield gauge("host_cpu_ratio", "Use of all its cores.", of_each("cpu_percent", 0.01), "host")
    yield gauge("host_memory_used_bytes", "Memory in use.", of_each("memory_used_mb", 2**20), "host")
    yield gauge("host_memory_bytes", "Memory.", of_each("memory_mb", 2**20), "host")
    yield gauge(
        "host_disk_free_bytes", "Free on the desk host's disk.", of_each("disk_free_mb", 2**20), "host"
    )


def _desktops_in_use() -> Metric:
    samples = samples_since(timezone.now() - HOUR, width_s(HOUR))
    sums = samples.aggregate(leased=Sum("leased"), ready=Sum("ready"), booting=Sum("booting"))
    there = sum(number or 0 for number in sums.values())
    rows: Rows = {(): sums["leased"] / there} if there else {}
    text = "Share of the last hour that desktops were leased; booting and ready ones were not."
    return gauge("desktops_in_use_ratio_1h", text, rows)
