"""`/metrics` for Prometheus: figures of the whole installation, without names of people, tasks or teams.

Read by programs of this machine, or with an API token of a member of the fleet's teams. A proxy on this
machine makes every request look like one of this machine: where one is declared (DESKHAND_HTTPS) or says so
itself, a token is asked for.
"""

from ipaddress import ip_address

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from webapp.accounts.models import Membership
from webapp.accounts.services.tokens import find_token
from webapp.fleet.access import fleet_teams
from webapp.operations.metrics.installation import InstallationCollector

BEARER = "Bearer "
PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")

REGISTRY = CollectorRegistry()
REGISTRY.register(InstallationCollector())
ProcessCollector(namespace="deskhand_web", registry=REGISTRY)


@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        text = "Ask from this machine, or with an API token of a member of the fleet's teams.\n"
        answer = HttpResponse(text, status=401, content_type="text/plain")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    write, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(write(REGISTRY), content_type=content_type)


def _may_read(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "")
    if given.startswith(BEARER):
        return _is_token_of_fleet(given.removeprefix(BEARER).strip())
    return _is_from_this_machine(request)


def _is_token_of_fleet(secret: str) -> bool:
    found = find_token(secret)
    if found is None:
        return False
    ours = Membership.objects.filter(user=found.user, team__name__in=fleet_teams())
    return found.user.is_superuser or ours.exists()


def _is_from_this_machine(request: HttpRequest) -> bool:
    if settings.BEHIND_HTTPS or any(name in request.headers for name in PROXY_HEADERS):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR") or "").is_loopback
    except ValueError:  # a unix socket has no address: what listens there is a proxy
        return False
