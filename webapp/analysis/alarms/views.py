"""The page of one alarm: its threshold on its chart, its likely cause, what to look at, and the remedy."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest
from webapp.analysis.alarms.evidence import evidence_of, parse_problems
from webapp.analysis.alarms.remedies import remedy_of
from webapp.analysis.alarms.root_alarms import brought_about, causes_first, likely_cause
from webapp.experiments.access import get_experiment


@require_safe
def alarm(request: MemberRequest, pk: int, name: str) -> HttpResponse:
    """Also of an alarm that is cleared: what it came from stays worth knowing."""
    experiment = get_experiment(request, pk)
    shown = get_object_or_404(experiment.alarms.select_related("acknowledged_by"), name=name)
    alarms = causes_first(experiment.alarms.all())
    evidence, remedy = evidence_of(shown), remedy_of(shown)
    ctx: dict[str, Any] = {
        "experiment": experiment,
        "alarm": shown,
        "guard": shown.guard,
        "cause": likely_cause(shown, alarms),
        "brought_about": brought_about(shown, alarms),
        "evidence": evidence,
        "problems": parse_problems(evidence) if evidence else {},
        "remedy": remedy,
        "changes": remedy.knob_changes(experiment.settings),
    }
    return render(request, "experiments/alarm.html", ctx)
