"""Requests that do their work once, however often they are sent: the sender's key claims a row first.

A claim whose process died is taken over after `CLAIM_LASTS`, so no key stays locked.
"""

import base64
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from cryptography.fernet import Fernet
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.accounts.access import current_membership
from webapp.accounts.models import SentRequest
from webapp.lib.request_values import BadValue

KEPT = timedelta(hours=24)
CLAIM_LASTS = timedelta(seconds=60)
MAX_KEY = 255
PRUNE_CHUNK = 5000
REPLAYED = "Idempotent-Replayed"
FORM_TOKEN = "form_token"
OF_EACH_SENDING = {"csrfmiddlewaretoken", FORM_TOKEN}
"""Fields of a form that are not part of what it says."""
SALT = "deskhand.sent-requests"


class StillRunning(Exception):
    """Raised while the first request with this key is at work."""


class OtherRequest(Exception):
    """Raised when the key came with another body, or to another route."""


@dataclass(frozen=True)
class Sent:
    """A request as its key names it."""

    key: str
    digest: str
    person: int
    team: int | None
    route: str
    body: str


def read_sent(request: HttpRequest, key: str, field: str, *, names_body: bool = False) -> Sent:
    """The request of a signed-in person. `names_body`: with another body the key is another key.

    Raises BadValue, which names `field`.
    """
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise BadValue(field, f"send 1 to {MAX_KEY} printable characters, such as a UUID")
    person = cast(int, request.user.pk)
    membership = current_membership(request)
    team = membership.team_id if membership else None
    route, body = _digest(request.get_full_path().encode()), _body_digest(request)
    parts = [person, team, getattr(request, "token_pk", None), key, (route, body) if names_body else None]
    digest = salted_hmac(SALT, json.dumps(parts), algorithm="sha256").hexdigest()
    return Sent(key, digest, person, team, route, body)


def answer_once(
    sent: Sent, work: Callable[[], HttpResponseBase], keeps: Callable[[int], bool]
) -> HttpResponseBase:
    """The kept answer, or that of `work`, kept if `keeps` says so of its status.

    Raises StillRunning and OtherRequest.
    """
    claim = uuid.uuid4()
    if kept := _claim(sent, claim):
        return _opened(sent, kept)
    mine = SentRequest.objects.filter(digest=sent.digest, claim=claim)
    is_kept = False
    try:
        answer = work()
        if isinstance(answer, HttpResponse) and keeps(answer.status_code):
            body = _cipher(sent).encrypt(answer.content)
            mine.update(status=answer.status_code, headers=dict(answer.items()), answer=body)
            is_kept = True
    finally:
        if not is_kept:
            mine.delete()
    return answer


def prune_sent_requests() -> int:
    """Delete rows older than `KEPT`; returns how many. Small chunks, short locks."""
    old = SentRequest.objects.filter(claimed_at__lt=timezone.now() - KEPT)
    num_deleted = 0
    while chunk := list(old.values_list("pk", flat=True)[:PRUNE_CHUNK]):
        num_deleted += SentRequest.objects.filter(pk__in=chunk).delete()[0]
    return num_deleted


def _claim(sent: Sent, claim: uuid.UUID) -> SentRequest | None:
    """None when the key is ours now, else the row with its answer."""
    now = timezone.now()
    values = {"route": sent.route, "body": sent.body, "claim": claim, "claimed_at": now}
    try:
        with transaction.atomic():
            SentRequest.objects.create(digest=sent.digest, person_id=sent.person, team_id=sent.team, **values)
    except IntegrityError:
        return _claimed_before(sent, values, now)
    return None


def _claimed_before(sent: Sent, values: dict[str, object], now: datetime) -> SentRequest | None:
    row = SentRequest.objects.filter(digest=sent.digest).first()
    if row is None:  # its work failed this moment
        raise StillRunning
    if row.claimed_at > now - KEPT:
        if (row.route, row.body) != (sent.route, sent.body):
            raise OtherRequest
        if row.status is not None:
            return row
        if row.claimed_at > now - CLAIM_LASTS:
            raise StillRunning
    mine = SentRequest.objects.filter(pk=row.pk, claim=row.claim)
    if not mine.update(status=None, **values):
        raise StillRunning
    return None


def _cipher(sent: Sent) -> Fernet:
    key = salted_hmac(SALT + ".answer", sent.digest + sent.key, algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))


def _opened(sent: Sent, row: SentRequest) -> HttpResponse:
    body = _cipher(sent).decrypt(bytes(row.answer))
    return HttpResponse(body, status=row.status, headers={**row.headers, REPLAYED: "true"})


def _body_digest(request: HttpRequest) -> str:
    """The same for the same values: each sending of a form with files has a boundary of its own."""
    if request.content_type != "multipart/form-data" and not request.POST:
        return _digest(request.body)
    values = {name: texts for name, texts in request.POST.lists() if name not in OF_EACH_SENDING}
    files: list[tuple[str, str, str]] = []
    for name, uploads in request.FILES.lists():
        for upload in uploads:
            upload.seek(0)
            content = hashlib.file_digest(upload, "sha256").hexdigest()  # type: ignore[arg-type]
            upload.seek(0)
            files.append((name, upload.name or "", content))
    return _digest(json.dumps([sorted(values.items()), sorted(files)]).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
