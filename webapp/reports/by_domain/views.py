"""The page of success by domain, and an evaluation as OSWorld's result folder."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest
from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.experiments.access import chosen_experiments
from webapp.reports.by_domain.domain_table import FEWER_STEPS, columns_of, rows_of
from webapp.reports.by_domain.published import PUBLISHED, STEPS


@require_safe
def success_by_domain(request: MemberRequest) -> HttpResponse:
    """`?id=3&id=5`: the newest evaluations of these experiments, beside what was published."""
    experiments = chosen_experiments(request)
    columns = columns_of(experiments)
    ctx = {
        "experiments": experiments,
        "columns": columns,
        "rows": rows_of(columns),
        "unlike": measured_otherwise(one.evaluation for one in columns),
        "fewer": FEWER_STEPS,
        "published": PUBLISHED if columns and all(one.is_osworld for one in columns) else (),
        "steps": STEPS,
    }
    return render(request, "reports/by_domain.html", ctx)
