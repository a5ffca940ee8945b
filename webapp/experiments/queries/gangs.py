"""How far the hosts of an attempt that is spread over several have come."""

from dataclasses import dataclass

from django.db.models import Q

from webapp.experiments.models import GangMember
from webapp.fleet.models import Worker, WorkerStatus
from webapp.lib.remote_calls import GangAttempt, gpu_host


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


def called_as(*, attempt_id: int, host: int) -> list[str]:
    """The worker that was called as this host of the gang; [] when none was."""
    rows = GangMember.objects.filter(attempt=attempt_id, host=host)
    return list(rows.values_list("worker_name", flat=True))


@gpu_host.patient_request
def gathering(attempt_id: GangAttempt) -> Gathering:
    """What the members have reported."""
    members = list(GangMember.objects.filter(attempt=attempt_id).order_by("host"))
    missing = tuple(one.worker_name for one in members if not one.address)
    member_problems = [f"{one.worker_name}: {one.problem}" for one in members if one.problem]
    # A host that has just died may be called before it is known for lost: it will not come. One that dies
    # later, or is cut off, leaves ranks elsewhere that wait in a collective for ever.
    lost = Worker.objects.filter(name__in=[one.worker_name for one in members]).order_by("name")
    lost = lost.filter(~Q(status=WorkerStatus.ONLINE) & Q(name__in=missing) | Q(status=WorkerStatus.LOST))
    gone = [one.name for one in lost]
    member_problems += [f"{name} does not answer any more" for name in gone]
    failed = any(one.problem and not one.is_left_alone for one in members) or not set(gone) <= set(missing)
    return Gathering(tuple(one.address for one in members), missing, tuple(member_problems), failed)
