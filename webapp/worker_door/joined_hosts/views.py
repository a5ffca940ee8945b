"""Joined hosts over HTTPS: they join and make requests; `receive.py` takes their reports. Answers are JSON.

A host sends `Authorization: Bearer NAME:SECRET` and its version with every call.
"""

import logging
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from pydantic import BaseModel, ConfigDict, ValidationError

from training.contracts.route_types import problems_of
from training.outgoing.remote_addresses import is_loopback
from webapp.fleet.models import JoinedHost
from webapp.lib.error_pages import error_body
from webapp.lib.host_links.certificates import Authority
from webapp.lib.outage_retries import passes
from webapp.lib.remote_calls import NotYours, call_named, caller, served_team
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.ownership import answer

log = logging.getLogger(__name__)
MAX_BODY_BYTES = 64 << 20
PLAIN = "hosts join and report over https only; see DESKHAND_HOSTS_ADDRESS in docs/hosts.md"
HostView = Callable[..., HttpResponse]


class JoinRequest(BaseModel):
    """What a host says when it comes."""

    model_config = ConfigDict(extra="forbid")
    token: str
    name: str
    roles: list[str]
    version: str


class TooLong(Exception):
    """Raised for a body beyond MAX_BODY_BYTES."""


def known_host(authorization: str) -> JoinedHost | None:
    """The host of an Authorization header."""
    name, _, secret = authorization.removeprefix("Bearer ").partition(":")
    return joining.find_host(name, secret)


def _is_private(request: HttpRequest) -> bool:
    """Whether secrets may travel with it: over TLS, or within this machine."""
    return request.is_secure() or is_loopback(request.META.get("REMOTE_ADDR") or "")


def for_hosts(view: HostView) -> HostView:
    """The view for a host that is known; errors become JSON that the host's log can show."""

    @csrf_exempt
    @require_POST
    @login_not_required
    @wraps(view)
    def served(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not _is_private(request):
            return _refuse(403, "plain", PLAIN)
        host = known_host(request.headers.get("Authorization", ""))
        if host is None:
            return _refuse(401, "unknown_host", "this host is not known or was revoked; join it again")
        sent = request.headers.get("X-Deskhand-Version", "")
        try:
            joining.require_version(sent)
        except joining.JoinRefused as refused:
            return _refuse(409, "version", str(refused))
        token, team = caller.set(host.name), served_team.set(host.team_id)
        try:
            return view(request, host, *args, **kwargs)
        except (ValidationError, TooLong, OverflowError, DataError) as error:  # a number that no column holds
            words = problems_of(error) if isinstance(error, ValidationError) else str(error)
            return _refuse(400, "bad_request", words)
        except (ObjectDoesNotExist, FileNotFoundError) as error:
            return _refuse(404, "gone", str(error))
        except NotYours as error:
            return _refuse(403, "not_yours", str(error))
        except (Error, OSError) as error:
            if not passes(error):
                raise
            return _refuse(503, "later", str(error))
        finally:
            caller.reset(token)
            served_team.reset(team)

    return served


@for_hosts
def host_ask(request: HttpRequest, host: JoinedHost, name: str) -> HttpResponse:
    """Answer one request."""
    call = call_named(name)
    if call is None or call.is_report:
        return _refuse(404, "unknown", f"no request is called {name}")
    found = answer(call, body_of(request), host.roles)
    return HttpResponse(call.answer.dump_json(found), content_type="application/json")


@csrf_exempt
@require_POST
@login_not_required
def host_join(request: HttpRequest) -> HttpResponse:
    """Take a host in that shows a token."""
    if not _is_private(request):
        return _refuse(403, "plain", PLAIN)
    try:
        asked = JoinRequest.model_validate_json(body_of(request))
        welcome = joining.join(
            token=asked.token, name=asked.name, roles=asked.roles, sent_version=asked.version
        )
    except (ValidationError, TooLong) as error:
        return _refuse(400, "bad_request", str(error))
    except joining.JoinRefused as refused:
        return _refuse(403, "refused", str(refused))
    log.info("host %s has joined", welcome.name)
    return JsonResponse({"name": welcome.name, "secret": welcome.secret, "environment": welcome.environment})


def no_such_call(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Everything else on the port of hosts."""
    return _refuse(404 if exception else 500, "unknown", "this port serves joined hosts only")


@require_safe
@login_not_required
def host_authority(request: HttpRequest) -> HttpResponse:
    """The certificate of this installation's own authority; a join token holds its fingerprint."""
    certificate = Authority.of(settings.SECRETS_DIR).certificate
    return HttpResponse(certificate, content_type="application/x-pem-file")


def body_of(request: HttpRequest) -> bytes:
    """All of it; screenshots are longer than what forms may send."""
    body = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise TooLong(f"body: longer than {MAX_BODY_BYTES >> 20} MiB")
    return body


def _refuse(status: int, code: str, message: str) -> HttpResponse:
    return JsonResponse(error_body(code, message), status=status)
