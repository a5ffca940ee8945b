"""What the fleet page shows: who is alive, and what every desktop is doing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from webapp.accounts.models import Team
from webapp.fleet.models import Desktop, DesktopPhase, Worker, WorkerStatus

RECENT = timedelta(hours=1)
"""Workers that left longer ago are not shown."""
LATE = timedelta(seconds=6)
"""Three missed heartbeats of 2 s: the age is marked before the worker counts as lost."""


def workers() -> list[dict[str, Any]]:
    """Online workers and those lost or stopped lately, with their desktops."""
    now = timezone.now()
    rows = Worker.objects.prefetch_related("desktops").order_by("queue", "name")
    shown = [row for row in rows if row.status == WorkerStatus.ONLINE or row.heartbeat_at > now - RECENT]
    return [
        {
            "worker": row,
            "num_desktops": sum(
                d.phase not in (DesktopPhase.GONE, DesktopPhase.DEAD) for d in row.desktops.all()
            ),
            "is_late": row.status == WorkerStatus.ONLINE and now - row.heartbeat_at > LATE,
        }
        for row in shown
    ]


def desktops(team: Team) -> list[dict[str, Any]]:
    """Desktops that exist, each with its latest trajectory where the team may see it."""
    rows = list(Desktop.objects.exclude(phase=DesktopPhase.GONE).select_related("worker").order_by("name"))
    newest = _latest_trajectories([row.pk for row in rows])
    return [
        {
            "desktop": row,
            "trajectory": trajectory if trajectory and trajectory.team_id == team.pk else None,
            "is_foreign": bool(trajectory and trajectory.team_id != team.pk and trajectory.ended_at is None),
        }
        for row in rows
        for trajectory in [newest.get(row.pk)]
    ]


def _latest_trajectories(desktop_ids: list[int]) -> dict[int, Any]:
    """desktop id -> its newest trajectory, in two queries."""
    model = Desktop._meta.get_field("trajectory").related_model
    ids = model.objects.filter(desktop_id__in=desktop_ids).values("desktop").annotate(last=Max("id"))
    found = model.objects.filter(pk__in=[row["last"] for row in ids])
    found = found.select_related("task", "experiment").defer("task__spec", "terms", "experiment__config")
    return {row.desktop_id: row for row in found}


def totals(found: list[dict[str, Any]], shown: list[dict[str, Any]]) -> dict[str, int]:
    """Numbers above the tables."""
    online = [item["worker"] for item in found if item["worker"].status == WorkerStatus.ONLINE]
    phases = [item["desktop"].phase for item in shown]
    return {
        "gpu_workers": sum(worker.queue == "gpu" for worker in online),
        "env_workers": sum(worker.queue == "env" for worker in online),
        "slots": sum(worker.slots for worker in online if worker.queue == "env"),
        "leased": sum(phase in (DesktopPhase.LEASED, DesktopPhase.RESETTING) for phase in phases),
        "desktops": sum(phase != DesktopPhase.DEAD for phase in phases),
        "dead": sum(phase == DesktopPhase.DEAD for phase in phases),
    }
