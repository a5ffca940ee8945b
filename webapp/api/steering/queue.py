"""/queue, and what is done to many experiments at once: cancel, tag, archive, delete, another place."""

from typing import Any

from django.core import signing
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.experiment_schemas import ExperimentRow
from webapp.experiments.access import MAX_AT_ONCE, get_experiment
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.queries.queue import MAX_PRIORITY, waiting_experiments
from webapp.experiments.services import experiments
from webapp.experiments.services.bulk_cancels import cancel_each, former_of, undo_cancels
from webapp.experiments.services.experiments import add_tag, archive_experiments
from webapp.lib.request_values import MAX_WHOLE, BadValue
from webapp.replay.services.experiment_deletion import DeletionRefused, delete_experiment

router = Router(tags=["queue"])
MAX_LISTED = 200


class PriorityIn(Schema):
    """A higher one runs first."""

    priority: int = Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)


class MoveIn(Schema):
    """Where to put it in the queue."""

    before: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Id of a queued experiment; null = at the end."""


class ManyIn(Schema):
    """Several experiments of the current team; ids of others are left out."""

    ids: list[int] = Field(min_length=1, max_length=MAX_AT_ONCE)


class TagIn(ManyIn):
    """A tag for several."""

    tag: str = Field(min_length=1, max_length=40)


class ArchiveIn(ManyIn):
    """Whether several are archived."""

    archived: bool = True


class ManyOut(Schema):
    """What became of each."""

    done: list[int]
    left: dict[str, str]
    """Id -> why nothing was done to it."""


class CancelledOut(ManyOut):
    """The same, and how to take it back."""

    undo: str
    """For `undo_cancel`, within an hour; "" when none of them waited."""


class UndoIn(Schema):
    """What `cancel_many` answered."""

    undo: str = Field(max_length=20_000)


@router.get("/queue", response=list[ExperimentRow], operation_id="list_queue")
def list_queue(request: MemberRequest) -> Any:
    """Waiting experiments of the current team in the order in which they run; at most 200."""
    rows = waiting_experiments().filter(team=member(request).team)
    return list(rows.select_related("team").defer("config")[:MAX_LISTED])


@router.post("/experiments/{int:pk}/priority", response=ExperimentRow, operation_id="set_priority")
def set_priority(request: MemberRequest, pk: int, body: PriorityIn) -> Any:
    """Change the priority of one."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    experiments.set_priority(experiment=experiment, priority=body.priority, user=request.user)
    return get_experiment(request, pk)


@router.post("/experiments/{int:pk}/move", response=ExperimentRow, operation_id="move_experiment")
def move_experiment(request: MemberRequest, pk: int, body: MoveIn) -> Any:
    """Put a queued one directly before another one, whose priority it takes, or at the end."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    before = None
    if body.before is not None and body.before != pk:
        before = get_object_or_404(Experiment, pk=body.before, status=ExperimentStatus.QUEUED)
    experiments.move_in_queue(experiment=experiment, before=before, user=request.user)
    return get_experiment(request, pk)


@router.post("/experiments/many/cancel", response=CancelledOut, operation_id="cancel_many")
def cancel_many(request: MemberRequest, body: ManyIn) -> Any:
    """Cancel several; `undo` takes it back for those that were waiting."""
    found, answer = _chosen(request, body)
    cancelled = cancel_each(experiments=found, user=request.user)
    refused = {str(pk): f"is {status} and cannot be cancelled" for pk, status in cancelled.refused.items()}
    return {"done": cancelled.done, "left": answer["left"] | refused, "undo": cancelled.undo}


@router.post("/experiments/many/cancel/undo", response=ManyOut, operation_id="undo_cancel")
def undo_cancel(request: MemberRequest, body: UndoIn) -> Any:
    """Let those that were cancelled while they waited wait again."""
    member(request, Role.OPERATOR)
    try:
        former = former_of(body.undo)
    except signing.BadSignature as error:
        raise BadValue("undo", "not what cancel_many answered within the last hour") from error
    found, answer = _chosen(request, ManyIn(ids=list(former)))
    done = undo_cancels(experiments=found, former=former, user=request.user)
    left = {str(row.pk): "is not cancelled any more" for row in found if row.pk not in done}
    return {"done": done, "left": answer["left"] | left}


@router.post("/experiments/many/tag", response=ManyOut, operation_id="tag_many")
def tag_many(request: MemberRequest, body: TagIn) -> Any:
    """Put a tag on several."""
    found, answer = _chosen(request, body)
    add_tag(experiments=found, tag=body.tag, user=request.user)
    return answer | {"done": [row.pk for row in found]}


@router.post("/experiments/many/archive", response=ManyOut, operation_id="archive_many")
def archive_many(request: MemberRequest, body: ArchiveIn) -> Any:
    """Take several out of the list, or put them back."""
    found, answer = _chosen(request, body)
    for row in found:
        if archive_experiments(experiments=[row], on=body.archived, user=request.user):
            answer["done"].append(row.pk)
        else:
            answer["left"][str(row.pk)] = "was so before, belongs to a sweep, or has not ended"
    return answer


@router.post("/experiments/many/delete", response=ManyOut, operation_id="delete_many")
def delete_many(request: MemberRequest, body: ManyIn) -> Any:
    """Delete several ended ones; replay entries with a verdict and demonstrations stay with their groups."""
    found, answer = _chosen(request, body)
    for row in found:
        pk = row.pk
        try:
            delete_experiment(experiment=row, user=request.user)
        except DeletionRefused as refusal:
            answer["left"][str(pk)] = str(refusal)
        else:
            answer["done"].append(pk)
    return answer


def _chosen(request: MemberRequest, body: ManyIn) -> tuple[list[Experiment], dict[str, Any]]:
    """Those of the team, oldest first, and an answer that tells of the others."""
    team = member(request, Role.OPERATOR).team
    rows = Experiment.objects.filter(team=team, pk__in=body.ids).select_related("owner").defer("config")
    found = list(rows.order_by("pk"))
    known = {row.pk for row in found}
    left = {str(pk): "no such experiment in this team" for pk in body.ids if pk not in known}
    if not found:
        raise Conflict("ids: none of them is an experiment of the current team.")
    return found, {"done": [], "left": left}
