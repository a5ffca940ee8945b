"""What people do to experiments: pause, resume, cancel, priority, order."""

import time
from collections.abc import Callable, Iterable

from django.contrib import messages
from django.core import signing
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiment_pages.part_views import part
from webapp.experiment_pages.views import UNDO_KEY, queue_rows
from webapp.experiments.access import get_experiment, ticked_experiments
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.queries.queue import MAX_PRIORITY
from webapp.experiments.services.alarms import acknowledge_alarm
from webapp.experiments.services.bulk_cancels import cancel_each, former_of, undo_cancels
from webapp.experiments.services.experiments import (
    move_in_queue,
    request_cancel,
    request_pause,
    resume_experiment,
    set_priority,
)
from webapp.lib.request_values import whole_number


@require_POST
def pause(request: MemberRequest, pk: int) -> HttpResponse:
    return _ask(request, pk, request_pause, "Pause requested.", "cannot be paused")


@require_POST
def resume(request: MemberRequest, pk: int) -> HttpResponse:
    return _ask(request, pk, resume_experiment, "Queued again.", "cannot be resumed")


@require_POST
def cancel(request: MemberRequest, pk: int) -> HttpResponse:
    """At once, and with an undo, where it had not begun; else at its next safe point."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    if experiment.status != ExperimentStatus.QUEUED:
        return _ask(request, pk, request_cancel, "Cancel requested.", "cannot be cancelled")
    return _cancel(request, [experiment])


@require_POST
def acknowledge(request: MemberRequest, pk: int, name: str) -> HttpResponse:
    """An alarm stops shouting; answers with the notices."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    if not acknowledge_alarm(experiment=experiment, name=name, user=request.user):
        get_object_or_404(experiment.alarms, name=name)
    return part(request, pk, "incidents")


def _ask(
    request: MemberRequest, pk: int, service: Callable[..., bool], done: str, refused: str
) -> HttpResponse:
    """Ask for a change; when its status has changed meanwhile, say how it stands now."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    if service(experiment=experiment, user=request.user):
        messages.success(request, f"#{pk}: {done}")
    else:
        experiment.refresh_from_db(fields=["status"])
        messages.warning(request, f"#{pk} is {experiment.status} and {refused}.")
    return redirect("experiment-detail", pk)


@require_POST
def cancel_experiments(request: MemberRequest) -> HttpResponse:
    """Cancel the ticked ones of the list; those that ended meanwhile are counted apart."""
    member(request, Role.OPERATOR)
    return _cancel(request, ticked_experiments(request), len(request.POST.getlist("id")))


def _cancel(request: MemberRequest, found: Iterable[Experiment], num_ticked: int = 1) -> HttpResponse:
    """Shows the list, which offers the undo."""
    cancelled = cancel_each(experiments=found, user=request.user)
    done, number = len(cancelled.done), len(cancelled.former)
    request.session[UNDO_KEY] = {"at": time.time(), "undo": cancelled.undo, "number": number}
    if done:
        messages.success(request, f"Cancel requested for {done} experiment{'' if done == 1 else 's'}.")
    if num_ticked > done:
        messages.warning(request, f"{num_ticked - done} had ended already, or were not yours.")
    return redirect("experiment-list")


@require_POST
def undo_cancel_experiments(request: MemberRequest) -> HttpResponse:
    """Take the last bulk cancel back, for those that were waiting."""
    membership = member(request, Role.OPERATOR)
    try:
        former = former_of(request.session.pop(UNDO_KEY, {}).get("undo", ""))
    except signing.BadSignature:
        former = {}
    found = Experiment.objects.filter(team=membership.team, pk__in=former)
    done = len(undo_cancels(experiments=found, former=former, user=request.user))
    if done:
        messages.success(request, f"{done} wait{'s' if done == 1 else ''} again.")
    else:
        messages.warning(request, "There is nothing left to undo.")
    return redirect("experiment-list")


@require_POST
def priority(request: MemberRequest, pk: int) -> HttpResponse:
    """Change the priority of a waiting experiment; answers the queue as it is then."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    typed = request.POST.get("priority", "")
    priority = whole_number(typed, "priority", low=-MAX_PRIORITY, high=MAX_PRIORITY)
    set_priority(experiment=experiment, priority=priority, user=request.user)
    return queue_rows(request)


@require_POST
def move(request: MemberRequest, pk: int) -> HttpResponse:
    """Put it before another waiting experiment (`before`), or at the end; answers the queue as it is then."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    wanted = request.POST.get("before", "")
    before = None
    if wanted and wanted != str(pk):
        other = whole_number(wanted, "before")
        before = get_object_or_404(Experiment, pk=other, status=ExperimentStatus.QUEUED)
    move_in_queue(experiment=experiment, before=before, user=request.user)
    return queue_rows(request)
