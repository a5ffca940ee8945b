"""Queue what the launch form asks for, as a sweep or as one experiment."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from training.contracts.number_text import counted
from webapp.accounts.access import MemberRequest
from webapp.experiments.models import Experiment
from webapp.experiments.services.experiments import queue_experiment
from webapp.experiments.sweep_plan import SweepPlan
from webapp.sweeps.services.sweeps import launch_sweep


def queue_typed(
    request: MemberRequest, asked: dict[str, Any], plan: SweepPlan | None, clone: Experiment | None
) -> HttpResponse:
    """To the page of what was queued; `asked` are the arguments that both kinds share."""
    if plan is not None:
        launched = launch_sweep(**asked, plan=plan)
        messages.success(request, f"The sweep began: {counted(plan.num_experiments, 'experiment')} in all.")
        return redirect("sweep-detail", launched.pk)
    experiment = queue_experiment(**asked, origin=clone)
    messages.success(request, f"Launched as #{experiment.pk}.")
    return redirect("experiment-detail", experiment.pk)
