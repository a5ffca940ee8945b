"""Links that show one version of a report without an account: signed, expiring, revocable, rate limited."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import row_id
from webapp.reports.models import ReportLink, ReportVersion
from webapp.reports.services import links

SIGNER = Signer(salt="reports.link", sep="~")
DAYS = (1, 7, 30, 90)
DEFAULT_DAYS = 7
WINDOW_S = 60
MAX_OF_LINK = 600
"""Requests of one link from one address in a window: a page with all its pictures, several times."""
MAX_WRONG = 20
"""Requests without a working link from one address in a window."""


class TooManyRequests(Exception):
    """Raised when an address asks too often; it may again after `WINDOW_S`."""


@transaction.atomic
def make_link(*, version: ReportVersion, user: User, days: int) -> ReportLink:
    """A new link to this version. `days` is one of DAYS."""
    expires_at = timezone.now() + timedelta(days=days)
    link = ReportLink.objects.create(version=version, owner=user, expires_at=expires_at)
    _log(AuditAction.SHARED, link, user, days=days)
    return link


@transaction.atomic
def revoke_link(*, link: ReportLink, user: User) -> None:
    """It shows nothing from now on."""
    if ReportLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now()):
        _log(AuditAction.UNSHARED, link, user)


def _log(action: AuditAction, link: ReportLink, user: User, **detail: Any) -> None:
    version = link.version
    log_action(
        action, person=user, team=version.report.team_id, kind="report", object_id=version.report_id,
        version=version.number, link=link.pk, **detail,
    )  # fmt: skip


def token_of(link: ReportLink) -> str:
    """What stands in the link's address."""
    return SIGNER.sign(f"{link.pk}.{link.nonce}")


def find_link(token: str, address: str) -> ReportLink | None:
    """The working link of this token; None for one that is forged, expired or revoked.

    `address` is the caller's, for the limits. Raises TooManyRequests.
    """
    link = _link_of(token)
    is_open = link is not None and link.revoked_at is None and link.expires_at > timezone.now()
    if link is None or not is_open:
        _count(f"report-wrong:{address}", MAX_WRONG)
        return None
    _count(f"report-link:{link.pk}:{address}", MAX_OF_LINK)
    return link


def note_opened(link: ReportLink) -> None:
    """Count a look at the page."""
    ReportLink.objects.filter(pk=link.pk).update(num_opened=F("num_opened") + 1, opened_at=timezone.now())


def _link_of(token: str) -> ReportLink | None:
    try:
        number, _, nonce = SIGNER.unsign(token).partition(".")
    except BadSignature:
        return None
    rows = ReportLink.objects.select_related("version__report")
    return rows.filter(pk=row_id(number) or 0, nonce=nonce).first()


def _count(key: str, limit: int) -> None:
    cache.add(key, 0, WINDOW_S)
    try:
        number = cache.incr(key)
    except ValueError:  # the window ended between the two calls
        return
    if number > limit:
        raise TooManyRequests


def link_url(request: HttpRequest, link: ReportLink) -> str:
    """ "" once it shows nothing."""
    if link.revoked_at or link.expires_at <= timezone.now():
        return ""
    return request.build_absolute_uri(reverse("public-report", args=[links.token_of(link)]))
