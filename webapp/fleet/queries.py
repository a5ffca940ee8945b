"""What the fleet page shows: hosts, workers, desktops, what operators did, and how things went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import Team
from webapp.fleet.display_rows import DesktopRow, HostRow, WorkerRow
from webapp.fleet.models import (
    BootFailure,
    Desktop,
    DesktopPhase,
    Host,
    Operation,
    OperationStatus,
    TargetKind,
    Worker,
    WorkerStatus,
)
from webapp.live.event_publishing import cursor_of, last_seq

RECENT = timedelta(hours=1)
"""Workers that left longer ago are not shown."""
FAILURES_SHOWN = 6
OPERATIONS_SHOWN = 8
PHASES_FIRST = list(DesktopPhase)
EARLIEST = datetime.min.replace(tzinfo=UTC)
SORTS: dict[str, Callable[[Desktop], Any]] = {
    "name": lambda d: d.name,
    "phase": lambda d: PHASES_FIRST.index(DesktopPhase(d.phase)),
    "host": lambda d: d.host,
    "age": lambda d: d.born_at or EARLIEST,
    "resets": lambda d: -d.num_resets,
    "failures": lambda d: -d.num_failures,
    "cpu": lambda d: -d.cpu_percent,
    "memory": lambda d: -d.memory_mb,
    "reset": lambda d: -d.last_reset_s,
}
FILTERS = ("q", "phase", "host", "provider", "sort")


# --- hosts and workers ---------------------------------------------------------------------------------


def workers() -> list[WorkerRow]:
    """Online workers and those lost or stopped lately, with the fleet's cursor; one query."""
    now = timezone.now()
    living = ~Q(desktops__phase__in=(DesktopPhase.GONE, DesktopPhase.DEAD))
    rows = Worker.objects.filter(Q(status=WorkerStatus.ONLINE) | Q(heartbeat_at__gt=now - RECENT))
    counted = rows.annotate(
        num_desktops=Count("desktops", filter=living, distinct=True),
        running=Count("trajectory", filter=Q(trajectory__ended_at=None), distinct=True),
        cursor=cursor_of("fleet"),
    )
    return [WorkerRow(row, row.num_desktops, row.running) for row in counted.order_by("queue", "name")]


def cursor_before(found: list[WorkerRow]) -> int:
    """The cursor of the statement that read the workers, which a page reads first."""
    return (found[0].worker.cursor or 0) if found else last_seq("fleet")  # type: ignore[attr-defined]


def hosts(found: list[WorkerRow], desktops: list[Desktop]) -> list[HostRow]:
    """Every host with a desk host; one query."""
    running: Counter[str] = Counter()
    for row in found:
        running[row.worker.host] += row.running
    alive = [d for d in desktops if d.phase != DesktopPhase.DEAD]
    total = Counter(desktop.host for desktop in alive)
    leased = Counter(desktop.host for desktop in alive if desktop.holder)
    lately = failures_of_a_day().filter(host=OuterRef("pk"))
    return [
        HostRow(host, total[host.name], leased[host.name], running[host.name])
        for host in Host.objects.annotate(has_failed_lately=Exists(lately)).order_by("name")
    ]


# --- desktops ------------------------------------------------------------------------------------------


def living_desktops() -> list[Desktop]:
    """Everything that exists, by name; one query. A fleet has hundreds: they are filtered in memory."""
    rows = Desktop.objects.exclude(phase=DesktopPhase.GONE).defer("log").select_related("worker")
    return list(rows.order_by("name"))


def fitting(living: Iterable[Desktop], filters: dict[str, str]) -> list[Desktop]:
    """Desktops that fit the URL's filters, sorted."""
    found = [desktop for desktop in living if _fits(desktop, filters)]
    return sorted(found, key=SORTS.get(filters.get("sort", ""), SORTS["name"]))


def _fits(desktop: Desktop, filters: dict[str, str]) -> bool:
    if any(filters.get(name) and getattr(desktop, name) != filters[name] for name in ("host", "provider")):
        return False
    text = filters.get("q", "").lower()
    if text and text not in f"{desktop.name} {desktop.holder} {desktop.reason} {desktop.quarantine}".lower():
        return False
    phase = filters.get("phase", "")
    if phase == "failed":
        return desktop.num_failures > 0 or desktop.phase == DesktopPhase.DEAD
    if phase == "quarantined":
        return bool(desktop.quarantine)
    return not phase or desktop.phase == phase


def with_trajectories(rows: list[Desktop], team: Team) -> list[DesktopRow]:
    """Each with its newest trajectory where the team may see it; one query."""
    newest = _latest_trajectories([row.pk for row in rows])
    return [
        DesktopRow(
            row,
            trajectory if trajectory and trajectory.team_id == team.pk else None,
            bool(trajectory and trajectory.team_id != team.pk and trajectory.ended_at is None),
        )
        for row in rows
        for trajectory in [newest.get(row.pk)]
    ]


def _latest_trajectories(desktop_ids: list[int]) -> dict[int, Any]:
    """desktop id -> its newest trajectory."""
    model: Any = Desktop._meta.get_field("trajectory").related_model
    ids = model.objects.filter(desktop_id__in=desktop_ids).values("desktop").annotate(last=Max("id"))
    found = model.objects.filter(pk__in=ids.values("last"))
    found = found.select_related("task", "experiment").defer("task__spec", "terms", "experiment__config")
    return {row.desktop_id: row for row in found}


def totals(found: list[WorkerRow], machines: list[HostRow], living: list[Desktop]) -> dict[str, Any]:
    """Numbers above everything else, whatever the filter."""
    online = [row.worker for row in found if row.worker.status == WorkerStatus.ONLINE]
    phases = Counter(desktop.phase for desktop in living)
    return {
        "gpu_workers": sum(worker.queue == "gpu" for worker in online),
        "env_workers": sum(worker.queue == "env" for worker in online),
        "draining": sum(worker.is_draining for worker in online),
        "slots": sum(worker.slots for worker in online if worker.queue == "env" and not worker.is_draining),
        "leased": phases[DesktopPhase.LEASED] + phases[DesktopPhase.RESETTING],
        "ready": phases[DesktopPhase.READY],
        "booting": phases[DesktopPhase.STARTING],
        "quarantined": sum(bool(desktop.quarantine) for desktop in living),
        "dead": phases[DesktopPhase.DEAD],
        "desktops": len(living) - phases[DesktopPhase.DEAD],
        "capacity": sum(row.host.max_desktops for row in machines if not row.is_lost),
        "leaks": sum(len(row.host.leaks) for row in machines),
    }


# --- what happened ---------------------------------------------------------------------------------------


def recent_operations(*, target: str = "") -> list[Operation]:
    """The newest ones, of one desktop when named; one query."""
    rows = Operation.objects.order_by("-id")
    if target:
        rows = rows.filter(kind=TargetKind.DESKTOP, target=target)
    return list(rows[:OPERATIONS_SHOWN])


def open_operations(operations: list[Operation]) -> dict[str, str]:
    """Target -> verb of what is under way."""
    open_ones = (OperationStatus.ASKED, OperationStatus.RUNNING)
    return {o.target: o.verb for o in operations if o.status in open_ones}


def failures_of_a_day() -> QuerySet[BootFailure]:
    """Desktops that did not come up lately."""
    return BootFailure.objects.filter(at__gt=timezone.now() - timedelta(days=1))


def recent_failures(found: list[HostRow]) -> list[BootFailure]:
    """The newest of them; no query where no host has any."""
    if not any(row.host.has_failed_lately for row in found):  # type: ignore[attr-defined]
        return []
    rows = failures_of_a_day().select_related("host").order_by("-at", "-id")
    return list(rows[:FAILURES_SHOWN])
