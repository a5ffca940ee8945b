"""Hosts with their numbers, and desktops that did not come up."""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import (
    Exists,
    OuterRef,
    QuerySet,
)
from django.utils import timezone

from webapp.fleet.display_rows import HostRow, WorkerRow
from webapp.fleet.models import (
    BootFailure,
    DesktopPhase,
    Host,
    WorkerStatus,
)
from webapp.fleet.queries.desktops import Living

FAILURES_SHOWN = 6


def host_rows(found: list[WorkerRow], living: Living) -> list[HostRow]:
    """Every host with a desk host; one query."""
    running: Counter[str] = Counter()
    for row in found:
        running[row.worker.host] += row.running
    lately = failures_of_a_day().filter(host=OuterRef("pk"))
    return [
        HostRow(
            host,
            living.count(host=host.name) - living.count(host=host.name, phase=DesktopPhase.DEAD),
            living.count(host=host.name, is_held=True)
            - living.count(host=host.name, is_held=True, phase=DesktopPhase.DEAD),
            running[host.name],
        )
        for host in Host.objects.select_related("joined__team")
        .annotate(has_failed_lately=Exists(lately))
        .order_by("name")
    ]


def totals(found: list[WorkerRow], machines: list[HostRow], living: Living) -> dict[str, Any]:
    """Numbers above everything else, whatever the filter."""
    online = [row.worker for row in found if row.worker.status == WorkerStatus.ONLINE]
    return {
        "gpu_workers": sum(worker.queue == "gpu" for worker in online),
        "env_workers": sum(worker.queue == "env" for worker in online),
        "draining": sum(worker.is_draining for worker in online),
        "slots": sum(worker.slots for worker in online if worker.queue == "env" and not worker.is_draining),
        "leased": living.count(phase=DesktopPhase.LEASED, is_warm=False)
        + living.count(phase=DesktopPhase.RESETTING),
        "warm": living.count(is_warm=True),
        "ready": living.count(phase=DesktopPhase.READY),
        "booting": living.count(phase=DesktopPhase.STARTING),
        "quarantined": living.count(is_kept=True),
        "dead": living.count(phase=DesktopPhase.DEAD),
        "desktops": living.count() - living.count(phase=DesktopPhase.DEAD),
        "capacity": sum(row.host.max_desktops for row in machines if not row.is_lost),
        "leaks": sum(len(row.host.leaks) for row in machines),
    }


def failures_of_a_day() -> QuerySet[BootFailure]:
    """Desktops that did not come up lately."""
    return BootFailure.objects.filter(at__gt=timezone.now() - timedelta(days=1))


def recent_failures(found: list[HostRow]) -> list[BootFailure]:
    """The newest of them; no query where no host has any."""
    if not any(row.host.has_failed_lately for row in found):  # type: ignore[attr-defined]
        return []
    rows = failures_of_a_day().select_related("host").order_by("-at", "-id")
    return list(rows[:FAILURES_SHOWN])
