"""/experiments/ID/checkpoints: list, evaluate, export; the checkpoints tab's buttons."""

from typing import Any

from django.shortcuts import get_object_or_404
from ninja import Router, Status

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.api.checkpoint_schemas import CheckpointOut, EvaluateIn, ExportIn, ExportOut
from webapp.api.experiment_schemas import ExperimentRow
from webapp.experiments.access import get_experiment
from webapp.experiments.checkpoints import checkpoint_table, evaluate_on_demand, exports, usable_checkpoints
from webapp.experiments.models import CheckpointExport, CheckpointRecord

router = Router(tags=["checkpoints"])


@router.get("/{int:pk}/checkpoints", response=list[CheckpointOut], operation_id="list_checkpoints")
def list_checkpoints(request: MemberRequest, pk: int) -> Any:
    """Checkpoints, newest first, with every held-out result of their weights."""
    return [
        {"checkpoint": row.checkpoint, "evaluations": row.results, "evaluating": [run.pk for run in row.runs]}
        for row in checkpoint_table.checkpoint_rows(get_experiment(request, pk))
    ]


@router.post(
    "/{int:pk}/checkpoints/{wanted}/evaluate",
    response={201: ExperimentRow},
    operation_id="evaluate_checkpoint",
)
def evaluate_checkpoint(request: MemberRequest, pk: int, wanted: str, body: EvaluateIn) -> Any:
    """Queue an evaluation of a checkpoint: best, latest, or its id. Answers the evaluating experiment."""
    queued = evaluate_on_demand.request_evaluation(
        checkpoint=_checkpoint(request, pk, wanted),
        user=request.user,
        how=evaluate_on_demand.HowToEvaluate(**body.model_dump()),
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
    """How far an export is; finished ones download from /experiments/ID/exports/EXPORT.tar."""
    experiment = get_experiment(request, pk)
    return get_object_or_404(CheckpointExport, pk=export_pk, checkpoint__experiment=experiment)


def _checkpoint(request: MemberRequest, pk: int, wanted: str) -> CheckpointRecord:
    return usable_checkpoints.find_checkpoint(get_experiment(request, pk, Role.OPERATOR), wanted)
