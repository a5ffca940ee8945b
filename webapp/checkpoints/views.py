"""The buttons of the checkpoints tab: evaluate, export, download, remove."""

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from training.contracts.config import ConfigError
from webapp.accounts.access import MemberRequest
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.checkpoints.download import CannotDownload, download
from webapp.checkpoints.services import exports
from webapp.checkpoints.services.evaluations import HowToEvaluate, request_evaluation
from webapp.experiments.access import get_experiment
from webapp.experiments.models import CheckpointExport, CheckpointRecord, ExportStatus
from webapp.experiments.queries.checkpoints import CheckpointRefused
from webapp.lib.request_values import BadValue, decimal_number, whole_number

BOTH, GREEDY, SAMPLED = "both", "greedy", "sampled"


@require_POST
@once_per_form
def evaluate(request: MemberRequest, pk: int, checkpoint_pk: int) -> HttpResponse:
    """Queue an evaluation of the checkpoint."""
    checkpoint = _checkpoint(request, pk, checkpoint_pk)
    try:
        queued = request_evaluation(checkpoint=checkpoint, user=request.user, how=_how(request))
    except (CheckpointRefused, ConfigError, BadValue) as refused:
        messages.error(request, f"Not evaluated: {_named(refused)}.")
    else:
        messages.success(request, f"Evaluation queued as #{queued.pk}; its result will appear here.")
    return _back(pk)


@require_POST
@once_per_form
def export(request: MemberRequest, pk: int, checkpoint_pk: int) -> HttpResponse:
    checkpoint = _checkpoint(request, pk, checkpoint_pk)
    try:
        exports.request_export(
            checkpoint=checkpoint, user=request.user, dtype=request.POST.get("dtype", "bfloat16")
        )
    except CheckpointRefused as refused:
        messages.error(request, f"Not exported: {_named(refused)}.")
    else:
        messages.success(request, f"Export of step {checkpoint.step} queued; progress is shown below.")
    return _back(pk)


@require_POST
def remove_export(request: MemberRequest, pk: int, export_pk: int) -> HttpResponse:
    """Delete the files of an export."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    found = get_object_or_404(CheckpointExport, pk=export_pk, checkpoint__experiment=experiment)
    if not exports.remove_export(export=found, user=request.user):
        messages.warning(request, f"The export is {found.status}; wait until it has ended.")
    return _back(pk)


@require_safe
def download_export(request: MemberRequest, pk: int, export_pk: int) -> HttpResponse | StreamingHttpResponse:
    """The folder as one .tar, made while it is sent."""
    experiment = get_experiment(request, pk)
    found = get_object_or_404(CheckpointExport, pk=export_pk, checkpoint__experiment=experiment)
    if found.status != ExportStatus.FINISHED:
        raise Http404(f"The export is {found.status}.")
    try:
        return download(export=found, user=request.user)
    except CannotDownload as refused:
        return HttpResponse(str(refused), status=409, content_type="text/plain; charset=utf-8")


def _checkpoint(request: MemberRequest, pk: int, checkpoint_pk: int) -> CheckpointRecord:
    experiment = get_experiment(request, pk, Role.OPERATOR)
    return get_object_or_404(experiment.checkpoints.select_related("experiment__team"), pk=checkpoint_pk)


def _how(request: MemberRequest) -> HowToEvaluate:
    """What the dialog says. Raises BadValue."""
    sampling = request.POST.get("sampling", BOTH)
    num_tasks = whole_number(request.POST.get("num_tasks", ""), "num_tasks")
    if sampling == GREEDY:
        return HowToEvaluate(num_tasks=num_tasks, temperature=0.0)
    return HowToEvaluate(
        num_tasks=num_tasks,
        samples_per_task=whole_number(request.POST.get("samples_per_task", "1"), "samples_per_task"),
        temperature=decimal_number(request.POST.get("temperature", ""), "temperature"),
        greedy=sampling != SAMPLED,
    )


def _named(refused: Exception) -> str:
    field = refused.field if isinstance(refused, CheckpointRefused) else ""
    return f"{field}: {refused}" if field else str(refused)


def _back(pk: int) -> HttpResponse:
    return redirect(f"{reverse('experiment-detail', args=[pk])}?tab=checkpoints")
