"""/samples: recorded runs to look around in."""

from typing import Any

from ninja import Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.samples.services.deletion import delete_samples
from webapp.samples.services.samples import seed

router = Router(tags=["team"])


class SamplesOut(Schema):
    """Ids of the sample experiments."""

    finished: int
    failed: int


@router.post("", response={201: SamplesOut}, operation_id="seed_samples")
def seed_samples(request: MemberRequest) -> Any:
    """Give the current team sample runs; a second call changes nothing."""
    found = seed(team=member(request, Role.OPERATOR).team, user=request.user)
    return Status(201, {"finished": found.finished.pk, "failed": found.failed.pk})


@router.delete("", response={204: None}, operation_id="delete_samples")
def remove_samples(request: MemberRequest) -> Any:
    """Delete them with everything that they brought."""
    delete_samples(team=member(request, Role.OPERATOR).team, user=request.user)
    return Status(204, None)
