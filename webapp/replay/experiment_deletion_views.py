"""The page that says what deleting experiments means, and does it."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_http_methods

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiments.access import ticked_experiments
from webapp.experiments.models import Experiment
from webapp.replay.services.experiment_deletion import DeletionRefused, delete_experiment, plan_deletion

MAX_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
def delete_experiments(request: MemberRequest) -> HttpResponse:
    """GET: what goes and what stays of those named by `id`. POST: delete them."""
    member(request, Role.OPERATOR)
    chosen = ticked_experiments(request)
    if not chosen:
        raise Http404("No such experiment, or it belongs to a team that you are not in.")
    if request.method == "POST":
        return _delete(request, chosen, request.user)
    plans = [plan_deletion(experiment) for experiment in chosen[:MAX_SHOWN]]
    ctx = {
        "plans": plans,
        "can_delete": [plan.experiment for plan in plans if not plan.refusal],
        "num_left_out": len(chosen) - len(plans),
    }
    return render(request, "experiments/delete.html", ctx)


def _delete(request: MemberRequest, chosen: list[Experiment], user: User) -> HttpResponse:
    done = 0
    for experiment in chosen:
        try:
            delete_experiment(experiment=experiment, user=user)
            done += 1
        except DeletionRefused as refusal:
            messages.warning(request, f"#{experiment.pk} was not deleted: {refusal}.")
    if done:
        messages.success(request, f"{done} experiment{pluralize(done)} deleted.")
    return redirect("experiment-list")
