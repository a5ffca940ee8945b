"""All that the port of joined hosts serves: they join, make requests, and report. Answers are JSON.

A host sends `Authorization: Bearer NAME:SECRET` and its version with every call. Each report is recorded
once, in its host's order, whatever is sent again: it and its number are written in one transaction. What
cannot be recorded (its trajectory was deleted, say) is refused and passed: it would hold up all behind it.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import partial, wraps
from itertools import groupby
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, Error, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from pydantic import BaseModel, ConfigDict, ValidationError

from training.contracts.route_types import problems_of
from training.outgoing.remote_addresses import is_loopback
from training.untrusted.packed_texts import NotAText, is_packed
from training.untrusted.pictures import NotAPicture
from webapp.fleet.models import JoinedHost
from webapp.lib.error_pages import error_body
from webapp.lib.host_links.certificates import Authority
from webapp.lib.outage_retries import passes
from webapp.lib.remote_calls import NotYours, Owned, call_named, caller, served_team
from webapp.lib.statements.short_statements import first_row
from webapp.trajectories.services.frames import store_frame
from webapp.trajectories.services.texts import store_text
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.joined_hosts.batches import Batch, NamedFrame, Received, SentReport
from webapp.worker_door.ownership import answer, works_for
from webapp.worker_door.trajectories import missing_frames

log = logging.getLogger(__name__)
RECEIVED = """
UPDATE fleet_joinedhost SET stream = %s, received = %s, num_refused = num_refused + %s
WHERE id = %s AND NOT (stream = %s AND received >= %s) RETURNING id
"""
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
    found = answer(call, body_of(request), host.roles, set())
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


@for_hosts
def host_reports(request: HttpRequest, host: JoinedHost) -> HttpResponse:
    """Record a batch of reports: its JSON on one line, then the screenshots that they name."""
    line, _, pictures = body_of(request).partition(b"\n")
    received = receive(host, Batch.model_validate_json(line), pictures)
    return HttpResponse(received.model_dump_json(), content_type="application/json")


def receive(host: JoinedHost, batch: Batch, pictures: bytes = b"") -> Received:
    """Record what is new of a batch, its screenshots first.

    Raises errors of database and storage that pass: what was recorded before one stays.
    """
    bad = _store(batch.frames, pictures)
    missing = missing_frames([(frame.team, frame.sha256) for frame in batch.frames if not frame.size])
    if missing:
        named = [NamedFrame(team=team, sha256=sha256) for team, sha256 in missing]
        return Received(number=host.received, refused={}, missing=named)
    refused: dict[int, str] = {}
    for _, together in groupby(batch.reports, key=partial(_transaction_of, bad)):
        refused |= _record(host, batch.stream, list(together), bad)
    return Received(number=batch.reports[-1].number, refused=refused)


def _store(frames: list[NamedFrame], pictures: bytes) -> dict[str, str]:
    """Those that are no screenshots (sha256 -> why): the reports that name them are refused."""
    end, bad = 0, dict[str, str]()
    teams = {team for team in {frame.team for frame in frames if frame.size} if works_for(team)}
    for frame in frames:
        begin, end = end, end + frame.size
        if not frame.size or frame.team not in teams:
            continue
        png = pictures[begin:end]
        try:
            if is_packed(png):
                store_text(frame.team, png, frame.sha256)
                continue
            if hashlib.sha256(png).hexdigest() != frame.sha256:
                raise NotAPicture("its bytes are others")
            store_frame(frame.team, png, sha256=frame.sha256)
        except (NotAPicture, NotAText) as error:
            log.warning("screenshot %s was refused: %s", frame.sha256, error)
            bad[frame.sha256] = f"screenshot {frame.sha256[:12]}: {error}"
    return bad


def _why_bad(sent: SentReport, bad: Mapping[str, str]) -> str:
    """Of the first of its screenshots that is none; "" = it names none of them."""
    return next((why for sha256, why in bad.items() if sha256 in sent.body), "")


def _transaction_of(bad: Mapping[str, str], sent: SentReport) -> tuple[str, int | None]:
    """The same for neighbours that are recorded together: one commit costs as much as a report."""
    call = call_named(sent.name)
    shares = call is not None and call.shares_transaction and not _why_bad(sent, bad)
    return ("of", sent.trajectory) if shares else ("number", sent.number)


def _record(
    host: JoinedHost, stream: str, together: list[SentReport], bad: Mapping[str, str]
) -> dict[int, str]:
    """Record all of them, or, when one cannot be, each by itself. Which were refused, and why."""
    checked: set[tuple[Owned, Any]] = set()
    try:
        with transaction.atomic():
            for sent in _count(host, stream, together):
                if why := _why_bad(sent, bad):
                    raise NotAPicture(why)
                _record_one(sent, host, checked)
    except Exception as error:  # the edge to another host: one bad report stops no other
        if passes(error):
            raise
        if len(together) > 1:
            alone = [_record(host, stream, [sent], bad) for sent in together]
            return {number: why for refused in alone for number, why in refused.items()}
        (sent,) = together
        log.warning("%s: report %s (%s) refused: %s", host.name, sent.number, sent.name, error)
        _count(host, stream, together, is_refused=True)
        return {sent.number: f"{type(error).__name__}: {error}"}
    return {}


def _record_one(sent: SentReport, host: JoinedHost, checked: set[tuple[Owned, Any]]) -> None:
    call = call_named(sent.name)
    if call is None or not call.is_report:
        raise LookupError(f"no report is called {sent.name}")
    answer(call, sent.body.encode(), host.roles, checked)


def _count(
    host: JoinedHost, stream: str, together: list[SentReport], *, is_refused: bool = False
) -> list[SentReport]:
    """Note that they were received; those that had not been before."""
    oldest, newest = together[0].number, together[-1].number
    if first_row(RECEIVED, [stream, newest, 1 if is_refused else 0, host.pk, stream, oldest]):
        return together
    received = JoinedHost.objects.values_list("received", flat=True).get(pk=host.pk)
    rest = [sent for sent in together if sent.number > received]
    return _count(host, stream, rest, is_refused=is_refused) if rest else []
