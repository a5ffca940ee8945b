"""What workers say of themselves and of the desktops that they use becomes rows."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.fleet.models import Host, JoinedHost, Worker, WorkerStatus
from webapp.fleet.reported_values import ReportedGpu
from webapp.fleet.services.joined_silence import SILENCE
from webapp.lib.heartbeat_age import silent_for
from webapp.lib.remote_calls import OwnWorker, any_host, gpu_host
from webapp.lib.statements.short_statements import first_row
from webapp.live.event_publishing import publish

WORKER_TIMEOUT = timedelta(seconds=12)
"""Six missed heartbeats of 2 s."""


class NameTaken(Exception):
    """Raised when a worker comes by a name that belongs to another host; the message says what to do."""


BEAT_AGAIN = """
UPDATE fleet_worker
SET slots = %s, version = %s, heartbeat_at = %s
WHERE name = %s AND queue = %s AND host = %s AND is_joined = %s AND pid = %s AND status = %s
RETURNING is_draining
"""
"""Every worker's, every two seconds."""


def beat_again(
    *, name: str, queue: str, host: str, pid: int, slots: int, version: str, is_joined: bool = False
) -> bool | None:
    """The heartbeat of a worker that is online: whether it is being drained; None when it is not online."""
    values = [slots, version, timezone.now(), name, queue, host, is_joined, pid]
    found = first_row(BEAT_AGAIN, [*values, WorkerStatus.ONLINE.value])
    return bool(found[0]) if found else None


@transaction.atomic
def beat_worker(*, name: str, host: str, **report: Any) -> Worker:
    """Record that a worker is alive, as `beat_again`; one coming back under its name is online again.

    Raises NameTaken when the row is of another host, which would hand over all that it runs.
    """
    if beat_again(name=name, host=host, **report) is not None:
        return Worker.objects.get(name=name)
    _require_free(name, host, is_joined=report.get("is_joined", False))
    now = timezone.now()
    values = {**report, "host": host, "status": WorkerStatus.ONLINE, "heartbeat_at": now, "started_at": now}
    # A host that is being drained stays so for workers that join it.
    if Host.objects.filter(name=host, is_draining=True).exists():
        values["is_draining"] = True
    worker, _ = Worker.objects.update_or_create(name=name, defaults=values)
    publish("fleet", "worker.joined", {"worker": name, "queue": worker.queue, "slots": worker.slots})
    return worker


def _require_free(name: str, host: str, *, is_joined: bool) -> None:
    """Raise NameTaken when the worker's or the host's name belongs to another host."""
    known = Worker.objects.filter(name=name).first()
    if known is not None and (known.is_joined != is_joined or (is_joined and known.host != host)):
        raise NameTaken(f"worker {name} is of another host; give one of the two another host name")
    if not is_joined and JoinedHost.objects.filter(host__name=host, revoked_at=None).exists():
        raise NameTaken(f"a joined host is called {host}, too; revoke it, or rename one of the two")


@gpu_host.request
def record_gpus(name: OwnWorker, gpus: list[ReportedGpu], cpu_places: int = 0, address: str = "") -> None:
    """Which GPUs a gpu worker sees; an empty list says that it looked and there is none.

    `address`: where other gpu hosts reach its own; "" = they do not.
    """
    Worker.objects.filter(name=name).update(gpus=gpus, cpu_places=cpu_places, address=address)


@any_host.request
@transaction.atomic
def stop_worker(name: OwnWorker, pid: int) -> None:
    """A worker said goodbye."""
    if Worker.objects.filter(name=name, pid=pid).update(status=WorkerStatus.STOPPED):
        publish("fleet", "worker.stopped", {"worker": name})


@transaction.atomic
def drain_machine(*, host: str, on: bool) -> None:
    """Its workers and its desk host take nothing new, or work again; no person's request, so no operation."""
    Host.objects.filter(name=host).update(is_draining=on)
    Worker.objects.filter(host=host).update(is_draining=on)


def is_silent(limit: timedelta, worker: str = "") -> Q:
    """Rows whose heartbeat is older than `limit`, or than a joined host may be silent.

    `worker`: the rows' path to their worker, with "__" at its end; "" = they are workers.
    """
    joined = Q((f"{worker}is_joined", True))
    return (~joined & silent_for(limit)) | (joined & silent_for(SILENCE.limit()))


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
