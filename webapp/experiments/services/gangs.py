"""The hosts of an attempt that is spread over several: called by the first, each tells where it listens."""

from collections.abc import Sequence

from django.db import transaction

from webapp.experiments.models import Attempt, GangMember


@transaction.atomic
def call_gang(*, attempt: Attempt, workers: Sequence[str], secret: str) -> None:
    """Name the workers in the order of their ranks; `secret` marks their common folder of checkpoints."""
    Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(gang_secret=secret)
    GangMember.objects.bulk_create(
        GangMember(attempt=attempt, host=host, worker_name=name) for host, name in enumerate(workers)
    )


def join_gang(*, attempt_id: int, host: int, worker_name: str, address: str) -> Attempt | None:
    """A host is there; None when it was not called, has come to another address, or the attempt has ended."""
    called = GangMember.objects.filter(
        attempt=attempt_id, host=host, worker_name=worker_name, attempt__ended_at=None
    )
    # A host that did not get the answer asks again; another process of it has another port.
    if not called.filter(address__in=("", address)).update(address=address):
        return None
    return Attempt.objects.select_related("experiment__team").get(pk=attempt_id)


def leave_gang(*, attempt_id: int, host: int, problem: str, is_left_alone: bool = False) -> None:
    """A host cannot go on; its first reason counts. `is_left_alone`: others did not come."""
    GangMember.objects.filter(attempt=attempt_id, host=host, problem="").update(
        problem=problem, is_left_alone=is_left_alone
    )
