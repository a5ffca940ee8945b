"""The page of success by domain, and an evaluation as OSWorld's result folder."""

from __future__ import annotations

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.analysis.evaluations.views import chosen_experiments
from webapp.experiments.models import Evaluation
from webapp.lib.media.file_streams import stream, zip_pieces
from webapp.reports.by_domain.domain_table import FEWER_STEPS, columns_of, rows_of
from webapp.reports.by_domain.osworld_results import result_files
from webapp.reports.by_domain.published import PUBLISHED, STEPS


@require_safe
def success_by_domain(request: MemberRequest) -> HttpResponse:
    """`?id=3&id=5`: the newest evaluations of these experiments, beside what was published."""
    experiments = chosen_experiments(request)
    columns = columns_of(experiments)
    ctx = {
        "nav": "experiments",
        "experiments": experiments,
        "columns": columns,
        "rows": rows_of(columns),
        "fewer": FEWER_STEPS,
        "published": PUBLISHED if columns and all(one.is_osworld for one in columns) else (),
        "steps": STEPS,
    }
    return render(request, "reports/by_domain.html", ctx)


@require_safe
def osworld_results(request: MemberRequest, pk: int) -> StreamingHttpResponse:
    """The evaluation's episodes as a .zip in OSWorld's folder layout."""
    rows = Evaluation.objects.select_related("experiment")
    evaluation = get_object_or_404(rows, pk=pk, experiment__team=member(request).team)
    experiment = evaluation.experiment
    log_action(
        AuditAction.EXPORTED, person=request.user, team=experiment.team_id, kind="experiment",
        object_id=experiment.pk, form="osworld", evaluation=evaluation.pk,
    )  # fmt: skip
    pieces = zip_pieces(result_files(evaluation))
    response = StreamingHttpResponse(stream(pieces), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="osworld-evaluation-{evaluation.pk}.zip"'
    return response
