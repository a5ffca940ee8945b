"""What workers say of themselves and of the desktops that they use becomes rows."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.fleet.models import Desktop, DesktopPhase, Host, Worker, WorkerStatus
from webapp.lib.silence import silent_for
from webapp.live.event_publishing import publish

WORKER_TIMEOUT = timedelta(seconds=12)
"""Six missed heartbeats of 2 s."""
JOINED_TIMEOUT = timedelta(seconds=120)
"""Of a joined host, which works on while the web is away: a restart or an upgrade costs no trajectory."""


@transaction.atomic
def beat_worker(
    *, name: str, queue: str, host: str, pid: int, slots: int, version: str, is_joined: bool = False
) -> Worker:
    """Record that a worker is alive; a worker coming back under its name is online again."""
    values = {
        "queue": queue,
        "host": host,
        "pid": pid,
        "slots": slots,
        "version": version,
        "is_joined": is_joined,
        "heartbeat_at": timezone.now(),
    }
    changed = Worker.objects.filter(name=name, pid=pid, status=WorkerStatus.ONLINE).update(**values)
    if changed:
        return Worker.objects.get(name=name)
    values |= {"status": WorkerStatus.ONLINE, "started_at": timezone.now()}
    # A host that is being drained stays so for workers that join it.
    draining = Host.objects.filter(name=host, is_draining=True).exists()
    worker, _ = Worker.objects.update_or_create(
        name=name, defaults=values | ({"is_draining": True} if draining else {})
    )
    publish("fleet", "worker.joined", {"worker": name, "queue": queue, "slots": slots})
    return worker


def record_gpus(*, name: str, gpus: list[dict[str, Any]], cpu_places: int = 0, address: str = "") -> None:
    """Which GPUs a gpu worker sees; an empty list says that it looked and there is none.

    `address`: where other gpu hosts reach its own; "" = they do not.
    """
    Worker.objects.filter(name=name).update(gpus=gpus, cpu_places=cpu_places, address=address)


@transaction.atomic
def stop_worker(*, name: str, pid: int) -> None:
    """A worker said goodbye."""
    if Worker.objects.filter(name=name, pid=pid).update(status=WorkerStatus.STOPPED):
        publish("fleet", "worker.stopped", {"worker": name})


def is_silent(limit: timedelta, worker: str = "") -> Q:
    """Rows whose heartbeat is older than `limit`, or than a joined host may be silent.

    `worker`: the rows' path to their worker, with "__" at its end; "" = they are workers.
    """
    joined = Q((f"{worker}is_joined", True))
    return (~joined & silent_for(limit)) | (joined & silent_for(JOINED_TIMEOUT))


def lose_stale_workers() -> list[Worker]:
    """Mark workers without heartbeats as lost; returns those newly lost."""
    silent = Worker.objects.filter(is_silent(WORKER_TIMEOUT), status=WorkerStatus.ONLINE)
    lost = []
    for worker in silent:
        with transaction.atomic():
            claimed = silent.filter(pk=worker.pk).update(status=WorkerStatus.LOST)
            if claimed:
                publish("fleet", "worker.lost", {"worker": worker.name})
                lost.append(worker)
    return lost


@transaction.atomic
def record_desktop(*, name: str, phase: DesktopPhase, **values: Any) -> Desktop:
    """The desktop that a trajectory uses. Its phase is taken only while no desk host tells of it."""
    known = Desktop.objects.filter(name=name).first()
    if known is not None and known.mirrored_at is not None:
        return known
    desktop, _ = Desktop.objects.update_or_create(name=name, defaults={"phase": phase, **values})
    if known is None or known.phase != phase:
        publish("fleet", "desktop.updated", {"desktop": name, "phase": phase})
    return desktop


@transaction.atomic
def end_remote_desktop(*, name: str) -> None:
    """A desktop of a remote service was closed; of its own desktops a desk host tells by itself."""
    remote = Desktop.objects.filter(name=name, mirrored_at=None).exclude(phase=DesktopPhase.GONE)
    if remote.update(phase=DesktopPhase.GONE, updated_at=timezone.now()):
        publish("fleet", "desktop.updated", {"desktop": name, "phase": DesktopPhase.GONE})
