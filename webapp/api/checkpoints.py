"""/experiments/ID/checkpoints: list, evaluate, export; the checkpoints tab's buttons."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Router, Status

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.api.binary import binary_answer
from webapp.api.checkpoint_schemas import CheckpointOut, EvaluateIn, ExportIn, ExportOut
from webapp.api.errors import Conflict
from webapp.api.experiment_schemas import ExperimentRow
from webapp.checkpoints.download import download
from webapp.checkpoints.queries.checkpoint_rows import checkpoint_rows
from webapp.checkpoints.services import exports
from webapp.checkpoints.services.evaluations import HowToEvaluate, request_evaluation
from webapp.experiments.access import get_experiment
from webapp.experiments.models import CheckpointExport, CheckpointRecord
from webapp.experiments.queries.checkpoints import find_checkpoint

router = Router(tags=["checkpoints"])


@router.get("/{int:pk}/checkpoints", response=list[CheckpointOut], operation_id="list_checkpoints")
def list_checkpoints(request: MemberRequest, pk: int) -> Any:
    """Checkpoints, newest first, with every held-out result of their weights."""
    return [
        {"checkpoint": row.checkpoint, "evaluations": row.results, "evaluating": [run.pk for run in row.runs]}
        for row in checkpoint_rows(get_experiment(request, pk))
    ]


@router.post(
    "/{int:pk}/checkpoints/{wanted}/evaluate",
    response={201: ExperimentRow},
    operation_id="evaluate_checkpoint",
)
def evaluate_checkpoint(request: MemberRequest, pk: int, wanted: str, body: EvaluateIn) -> Any:
    """Queue an evaluation of a checkpoint: best, latest, or its id. Answers the evaluating experiment."""
    queued = request_evaluation(
        checkpoint=_checkpoint(request, pk, wanted),
        user=request.user,
        how=HowToEvaluate(**body.model_dump()),
    )
    return Status(201, queued)


@router.post(
    "/{int:pk}/checkpoints/{wanted}/export",
    response={201: ExportOut},
    operation_id="export_checkpoint",
)
def export_checkpoint(request: MemberRequest, pk: int, wanted: str, body: ExportIn) -> Any:
    """Write a checkpoint (best, latest, or its id) as a plain transformers folder."""
    checkpoint = _checkpoint(request, pk, wanted)
    return Status(201, exports.request_export(checkpoint=checkpoint, user=request.user, dtype=body.dtype))


@router.get("/{int:pk}/exports/{int:export_pk}", response=ExportOut, operation_id="show_export")
def show_export(request: MemberRequest, pk: int, export_pk: int) -> Any:
    """How far an export is."""
    return _export(request, pk, export_pk)


@router.get(
    "/{int:pk}/exports/{int:export_pk}/tar",
    operation_id="download_export",
    **binary_answer("application/x-tar"),
)
def send_export(request: MemberRequest, pk: int, export_pk: int) -> HttpResponseBase:
    """The folder of a finished one as one .tar; 409 where the web server does not see it."""
    return download(export=_export(request, pk, export_pk), user=request.user)


@router.delete("/{int:pk}/exports/{int:export_pk}", response={204: None}, operation_id="remove_export")
def remove_export(request: MemberRequest, pk: int, export_pk: int) -> Any:
    """Delete its files; 409 while it is being written."""
    found = _export(request, pk, export_pk, Role.OPERATOR)
    if not exports.remove_export(export=found, user=request.user):
        raise Conflict(f"The export is {found.status}; wait until it has ended.")
    return Status(204, None)


def _export(request: MemberRequest, pk: int, export_pk: int, role: Role = Role.VIEWER) -> CheckpointExport:
    experiment = get_experiment(request, pk, role)
    return get_object_or_404(CheckpointExport, pk=export_pk, checkpoint__experiment=experiment)


def _checkpoint(request: MemberRequest, pk: int, wanted: str) -> CheckpointRecord:
    return find_checkpoint(get_experiment(request, pk, Role.OPERATOR), wanted)
