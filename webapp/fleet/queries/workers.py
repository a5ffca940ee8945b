"""Online workers and those that left lately."""

from datetime import timedelta
from typing import Any

from django.db.models import (
    Count,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.fleet.display_rows import WorkerRow
from webapp.fleet.models import (
    Desktop,
    DesktopPhase,
    Worker,
    WorkerStatus,
)
from webapp.live.event_publishing import cursor_of, last_seq

RECENT = timedelta(hours=1)
"""Workers that left longer ago are not shown."""


def recent_workers() -> list[WorkerRow]:
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
