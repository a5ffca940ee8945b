"""The hosts of an attempt that is spread over several: called by the first, each tells where it listens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from webapp.experiments.models import Attempt, GangMember
from webapp.fleet.models import Worker, WorkerStatus


@dataclass(frozen=True, slots=True)
class Gathering:
    """How far the hosts of an attempt have come."""

    addresses: tuple[str, ...]
    """NAME:PORT of each, in the order of their ranks; "" of one that has not come."""
    missing: tuple[str, ...]
    """Workers that have not come."""
    problems: tuple[str, ...]
    """Of each that left, or was lost before it came: its worker and why."""
    has_failed: bool
    """True when one of them left for a reason of its own, and not because others did not come."""


@transaction.atomic
def call_gang(*, attempt: Attempt, workers: Sequence[str], secret: str) -> None:
    """Name the workers in the order of their ranks; `secret` marks their common folder of checkpoints."""
    Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(gang_secret=secret)
    GangMember.objects.bulk_create(
        GangMember(attempt=attempt, host=host, worker_name=name) for host, name in enumerate(workers)
    )


def come(*, attempt_id: int, host: int, worker_name: str, address: str) -> Attempt | None:
    """A host is there; None when it was not called, has come to another address, or the attempt has ended."""
    called = GangMember.objects.filter(
        attempt=attempt_id, host=host, worker_name=worker_name, attempt__ended_at=None
    )
    # A host that did not get the answer asks again; another process of it has another port.
    if not called.filter(address__in=("", address)).update(address=address):
        return None
    return Attempt.objects.select_related("experiment__team").get(pk=attempt_id)


def called_as(*, attempt_id: int, host: int) -> list[str]:
    """The worker that was called as this host of the gang; [] when none was."""
    rows = GangMember.objects.filter(attempt=attempt_id, host=host)
    return list(rows.values_list("worker_name", flat=True))


def leave(*, attempt_id: int, host: int, problem: str, is_left_alone: bool = False) -> None:
    """A host cannot go on; its first reason counts. `is_left_alone`: others did not come."""
    GangMember.objects.filter(attempt=attempt_id, host=host, problem="").update(
        problem=problem, is_left_alone=is_left_alone
    )


def gathering(attempt_id: int) -> Gathering:
    """What the members have told."""
    members = list(GangMember.objects.filter(attempt=attempt_id).order_by("host"))
    missing = tuple(one.worker_name for one in members if not one.address)
    told = [f"{one.worker_name}: {one.problem}" for one in members if one.problem]
    # A host that has just died may be called before it is known for lost: it will not come. One that dies
    # later, or is cut off, leaves ranks elsewhere that wait in a collective for ever.
    lost = Worker.objects.filter(name__in=[one.worker_name for one in members]).order_by("name")
    lost = lost.filter(~Q(status=WorkerStatus.ONLINE) & Q(name__in=missing) | Q(status=WorkerStatus.LOST))
    gone = [one.name for one in lost]
    told += [f"{name} does not answer any more" for name in gone]
    failed = any(one.problem and not one.is_left_alone for one in members) or not set(gone) <= set(missing)
    return Gathering(tuple(one.address for one in members), missing, tuple(told), failed)
