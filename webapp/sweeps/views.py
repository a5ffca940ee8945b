"""The page of a sweep, its charts, and what people do to the whole."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.analysis.costs.cost_rows import cost_rows
from webapp.analysis.costs.ledger import costs_of, total_of
from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.experiments.models import SWEEP_TRANSITIONS, ArmStatus, Experiment, Sweep, SweepStatus
from webapp.experiments.queries.prices import prices_of
from webapp.live.event_publishing import last_seq
from webapp.sweeps.access import get_sweep
from webapp.sweeps.chart_data import sweep_charts
from webapp.sweeps.queries.results import best_of, ended_of, measured_by, results_of
from webapp.sweeps.services.sweeps import cancel_sweep, pause_sweep, resume_sweep


@require_safe
def detail(request: MemberRequest, pk: int) -> HttpResponse:
    """Arms with their intervals, the best one, curves with their spread, parallel coordinates."""
    cursor = last_seq("queue")
    sweep = get_sweep(request, pk)
    return render(request, "experiments/sweep.html", {"cursor": cursor, **_context(sweep)})


@require_safe
def rows(request: MemberRequest, pk: int) -> HttpResponse:
    """Everything of the page but its cost and charts, as live updates ask for it."""
    return render(request, "experiments/parts/sweep.html", _context(get_sweep(request, pk)))


@require_safe
def cost(request: MemberRequest, pk: int) -> HttpResponse:
    """Of all its experiments together: fetched after the page, since it sums over their trajectories."""
    sweep = get_sweep(request, pk)
    prices = prices_of(sweep.team)
    members = list(Experiment.objects.filter(arm__sweep=sweep).values_list("pk", flat=True))
    found = total_of(prices, list(costs_of(prices, members).values()))
    return render(request, "experiments/parts/cost.html", {"cost": found, "cost_rows": cost_rows(found)})


@require_safe
def charts(request: MemberRequest, pk: int) -> JsonResponse:
    """Mean and spread by step of the arms, and the lines of the parallel coordinates."""
    sweep = get_sweep(request, pk)
    return JsonResponse(sweep_charts(sweep.plan, results_of(sweep)))


@require_POST
def pause(request: MemberRequest, pk: int) -> HttpResponse:
    return _ask(request, pk, pause_sweep, "Pause requested for all its experiments.", "cannot be paused")


@require_POST
def resume(request: MemberRequest, pk: int) -> HttpResponse:
    refused = "cannot be resumed now; experiments that still pause save their checkpoint first"
    return _ask(request, pk, resume_sweep, "It goes on.", refused)


@require_POST
def cancel(request: MemberRequest, pk: int) -> HttpResponse:
    return _ask(request, pk, cancel_sweep, "Cancel requested for all its experiments.", "has ended already")


def _ask(
    request: MemberRequest, pk: int, service: Callable[..., bool], done: str, refused: str
) -> HttpResponse:
    sweep = get_sweep(request, pk, Role.OPERATOR)
    if service(sweep=sweep, user=request.user):
        messages.success(request, done)
    else:
        sweep.refresh_from_db(fields=["status"])
        messages.warning(request, f"The sweep is {sweep.status} and {refused}.")
    return redirect("sweep-detail", pk)


def _context(sweep: Sweep) -> dict[str, Any]:
    results = results_of(sweep)
    targets = SWEEP_TRANSITIONS[SweepStatus(sweep.status)]
    best = best_of(results, sweep.plan)
    sign = -1 if sweep.plan.direction == "maximise" else 1
    return {
        "sweep": sweep,
        "plan": sweep.plan,
        "results": sorted(
            results, key=lambda one: (one.mean is None, sign * (one.mean or 0.0), one.arm.number)
        ),
        "best": best,
        "unlike": measured_otherwise(measured_by(results, sweep.plan)),
        "unmoved": [] if best else ended_of(results),
        "num_ended": sum(one.arm.status != ArmStatus.RUNNING for one in results),
        "num_stopped": sum(one.arm.status == ArmStatus.STOPPED for one in results),
        "is_share": sweep.plan.is_share,
        "can_pause": SweepStatus.PAUSED in targets,
        "can_resume": SweepStatus.RUNNING in targets,
        "can_cancel": SweepStatus.CANCELLED in targets,
    }
