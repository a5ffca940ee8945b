"""What the fleet page shows: host_rows, recent_workers, desktops, what operators did, and how things went."""

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import (
    Case,
    Count,
    F,
    Max,
    Q,
    QuerySet,
    Value,
    When,
    Window,
)

from webapp.accounts.models import Team
from webapp.fleet.display_rows import DesktopRow
from webapp.fleet.models import (
    Desktop,
    DesktopPhase,
)

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


@dataclass(frozen=True)
class Living:
    """How many desktops exist, by what the page counts them by."""

    kinds: list[dict[str, Any]]
    """host, provider, phase, is_held, is_kept (in quarantine), is_warm (an env worker keeps it, and nothing
    runs on it), number"""

    def count(self, **values: Any) -> int:
        """Those of which all of `values` are true."""
        matching = (kind for kind in self.kinds if all(kind[name] == value for name, value in values.items()))
        return sum(kind["number"] for kind in matching)

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


def fitting_desktops(filters: dict[str, str]) -> QuerySet[Desktop]:
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
    counted = fitting_desktops(filters).annotate(num_fitting=Window(Count("pk")))
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
