"""What the fleet page shows: hosts, workers, desktops, what operators did, and how things went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce
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
DESKTOPS_SHOWN = 48
"""On one page of the wall or table."""
PHASE_ORDER = Case(*(When(phase=phase, then=Value(place)) for place, phase in enumerate(DesktopPhase)))
SORTS: dict[str, Any] = {
    "name": "name",
    "phase": PHASE_ORDER,
    "host": "host",
    "age": F("born_at").asc(nulls_first=True),
    "resets": "-num_resets",
    "failures": "-num_failures",
    "cpu": "-cpu_percent",
    "memory": "-memory_mb",
    "reset": "-last_reset_s",
}
FILTERS = ("q", "phase", "host", "provider", "sort")


# --- hosts and workers ---------------------------------------------------------------------------------


def workers() -> list[WorkerRow]:
    """Online workers and those lost or stopped lately, with the fleet's cursor; one query. What they hold is
    counted apart: a join with all that they ever ran would multiply it by their desktops."""
    now = timezone.now()
    trajectories: Any = Desktop._meta.get_field("trajectory").related_model
    living = Desktop.objects.exclude(phase__in=(DesktopPhase.GONE, DesktopPhase.DEAD))
    rows = Worker.objects.filter(Q(status=WorkerStatus.ONLINE) | Q(heartbeat_at__gt=now - RECENT))
    counted = rows.annotate(
        num_desktops=_number_of_worker(living),
        running=_number_of_worker(trajectories.objects.filter(ended_at=None)),
        cursor=cursor_of("fleet"),
    )
    return [WorkerRow(row, row.num_desktops, row.running) for row in counted.order_by("queue", "name")]


def _number_of_worker(rows: QuerySet[Any]) -> Coalesce:
    """Of these rows, those of the worker of the outer query."""
    own = rows.filter(worker=OuterRef("pk")).order_by().values("worker")
    return Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), 0)


def cursor_before(found: list[WorkerRow]) -> int:
    """The cursor of the statement that read the workers, which a page reads first."""
    return (found[0].worker.cursor or 0) if found else last_seq("fleet")  # type: ignore[attr-defined]


def hosts(found: list[WorkerRow], living: Living) -> list[HostRow]:
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
        for host in Host.objects.select_related("joined")
        .annotate(has_failed_lately=Exists(lately))
        .order_by("name")
    ]


# --- desktops ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Living:
    """How many desktops exist, by what the page counts them by."""

    kinds: list[dict[str, Any]]
    """host, provider, phase, is_held, is_kept (in quarantine), is_warm (an env worker keeps it, and nothing
    runs on it), number"""

    def count(self, **values: Any) -> int:
        """Those of which all of `values` are true."""
        fitting = (kind for kind in self.kinds if all(kind[name] == value for name, value in values.items()))
        return sum(kind["number"] for kind in fitting)

    def names(self, column: str) -> list[str]:
        return sorted({kind[column] for kind in self.kinds})


def living_desktops() -> Living:
    """Everything that exists; one query."""
    rows = Desktop.objects.exclude(phase=DesktopPhase.GONE).order_by()
    model: Any = Desktop._meta.get_field("trajectory").related_model
    at_work = model.objects.filter(ended_at=None).exclude(desktop=None).values("desktop")
    kinds = rows.annotate(
        is_held=~Q(holder=""),
        is_kept=~Q(quarantine=""),
        is_warm=Q(phase=DesktopPhase.LEASED, worker__isnull=False) & ~Q(pk__in=at_work),
    )
    columns = ("host", "provider", "phase", "is_held", "is_kept", "is_warm")
    counted: Any = kinds.values(*columns).annotate(number=Count("pk"))
    return Living(list(counted))


def fitting(filters: dict[str, str]) -> QuerySet[Desktop]:
    """Living desktops that fit the URL's filters, sorted."""
    rows = Desktop.objects.exclude(phase=DesktopPhase.GONE).defer("log").select_related("worker")
    rows = rows.filter(**{name: filters[name] for name in ("host", "provider") if filters.get(name)})
    if text := filters.get("q", ""):
        columns = ("name", "holder", "reason", "quarantine")
        rows = rows.filter(reduce(or_, (Q(**{f"{column}__icontains": text}) for column in columns)))
    phase = filters.get("phase", "")
    if phase == "failed":
        rows = rows.filter(Q(num_failures__gt=0) | Q(phase=DesktopPhase.DEAD))
    elif phase == "quarantined":
        rows = rows.exclude(quarantine="")
    elif phase:
        rows = rows.filter(phase=phase)
    return rows.order_by(SORTS.get(filters.get("sort", ""), SORTS["name"]), "name")


@dataclass(frozen=True)
class DesktopPage:
    """Some of those that fit."""

    rows: list[Desktop]
    num_fitting: int
    number: int
    """From 1."""

    @property
    def older(self) -> int:
        """The next page; 0 on the last one."""
        return self.number + 1 if self.number * DESKTOPS_SHOWN < self.num_fitting else 0

    @property
    def newer(self) -> int:
        return self.number - 1


def page_of_desktops(filters: dict[str, str], number: int) -> DesktopPage:
    """Page `number` of those that fit, or the first when there is no such page; one query, or two then."""
    counted = fitting(filters).annotate(num_fitting=Window(Count("pk")))
    rows: list[Any] = list(counted[(number - 1) * DESKTOPS_SHOWN : number * DESKTOPS_SHOWN])
    if not rows and number > 1:
        return page_of_desktops(filters, 1)
    return DesktopPage(rows, rows[0].num_fitting if rows else 0, number)


def with_trajectories(rows: list[Desktop], team: Team) -> list[DesktopRow]:
    """Each with its newest trajectory where the team may see it; one query."""
    newest = _latest_trajectories([row.pk for row in rows])
    return [
        DesktopRow(
            row,
            trajectory if trajectory and trajectory.team_id == team.pk else None,
            bool(trajectory and trajectory.team_id != team.pk and trajectory.ended_at is None),
            trajectory is None or trajectory.ended_at is not None,
        )
        for row in rows
        for trajectory in [newest.get(row.pk)]
    ]


def _latest_trajectories(desktop_ids: list[int]) -> dict[int, Any]:
    """desktop id -> its newest trajectory."""
    model: Any = Desktop._meta.get_field("trajectory").related_model
    ids = model.objects.filter(desktop_id__in=desktop_ids).values("desktop").annotate(last=Max("id"))
    found = model.objects.filter(pk__in=ids.values("last"))
    found = found.select_related("task", "experiment").defer(
        "task__spec", "terms", "checks", "experiment__config"
    )
    return {row.desktop_id: row for row in found}


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
