"""What operators do: drain, and work on single desktops. Each leads back to its page, with a message."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.fleet.access import require_desktop_operator, require_fleet_operator
from webapp.fleet.models import Desktop, Host, Verb, Worker
from webapp.fleet.services import operations


@require_POST
def desktop_operate(request: MemberRequest, name: str, verb: str) -> HttpResponse:
    """Ask a desktop's host for an operation; the reason comes with the form."""
    member(request, Role.OPERATOR)
    desktop = get_object_or_404(Desktop, name=name)
    require_desktop_operator(request, desktop, Verb(verb))
    try:
        asked = operations.request_operation(
            desktop=desktop, verb=Verb(verb), user=request.user, reason=request.POST.get("reason", "")
        )
    except operations.Refused as refused:
        messages.warning(request, str(refused))
    else:
        messages.success(request, f"{asked.get_verb_display()} {name}: asked {desktop.host}.")
    return _back(request)


@require_POST
def worker_drain(request: MemberRequest, pk: int) -> HttpResponse:
    """on=1 drains, on=0 undrains."""
    require_fleet_operator(request)
    worker = get_object_or_404(Worker, pk=pk)
    done = operations.drain_worker(worker=worker, on=request.POST.get("on") == "1", user=request.user)
    messages.success(request, f"{worker.name} {done.outcome}.")
    return _back(request)


@require_POST
def host_drain(request: MemberRequest, pk: int) -> HttpResponse:
    """on=1 drains, on=0 undrains."""
    require_fleet_operator(request)
    host = get_object_or_404(Host, pk=pk)
    done = operations.drain_host(host=host, on=request.POST.get("on") == "1", user=request.user)
    messages.success(request, f"{host.name}: {done.outcome}.")
    return _back(request)


def _back(request: MemberRequest) -> HttpResponse:
    """To the page that the form stood on, with its filters."""
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return redirect(wanted if wanted.startswith("/fleet/") and is_ours else "fleet-show")
