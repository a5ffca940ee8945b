"""Who may read which rows of the audit log, and the filters of its page, export and API."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from webapp.accounts.access import member
from webapp.accounts.models import AuditAction, AuditEntry, Role, Scope
from webapp.lib.request_values import BadValue, check_text, shortened

A_DAY = timedelta(days=1)


def readable_rows(request: HttpRequest) -> QuerySet[AuditEntry]:
    """Rows of the current team for its admins, all of them for superusers; 403 for others."""
    rows = AuditEntry.objects.select_related("team")
    if sees_everything(request):
        return rows
    return rows.filter(team=member(request, Role.ADMIN).team)


def sees_everything(request: HttpRequest) -> bool:
    """True for a superuser who is signed in, or whose token may do all that its owner may."""
    if not getattr(request.user, "is_superuser", False):
        return False
    scope = getattr(request, "token_scope", Scope.ADMIN)
    if scope != Scope.ADMIN:
        raise PermissionDenied(f"This needs a token of the scope {Scope.ADMIN}; yours is {scope}.")
    return True


@dataclass(frozen=True)
class AuditFilter:
    """What the log is narrowed to, as it stands in the URL; "" = everything."""

    person: str = ""
    """A whole name."""
    action: str = ""
    object: str = ""
    """ "experiment 12", or "experiment" for all of them."""
    since: str = ""
    until: str = ""
    """ISO dates or times; a date without a time is the whole day, in UTC."""

    @classmethod
    def from_query(cls, query: QueryDict) -> AuditFilter:
        """Read the filters of a URL. Raises BadValue."""
        found = cls(**{each.name: query.get(each.name, "").strip() for each in fields(cls)})
        for each in fields(cls):
            check_text(getattr(found, each.name), each.name)
        if found.action and found.action not in AuditAction.values:
            raise BadValue(
                "action", f"'{shortened(found.action)}' is not one of {', '.join(AuditAction.values)}"
            )
        found.moments()
        return found

    def is_narrow(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    def moments(self) -> tuple[datetime | None, datetime | None]:
        """From when and until when; None = open. Raises BadValue."""
        return _moment(self.since, "since", timedelta()), _moment(self.until, "until", A_DAY)

    def apply(self, rows: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """`rows` narrowed; ordering is the pager's."""
        if self.person:
            rows = rows.filter(person_name=self.person)
        if self.action:
            rows = rows.filter(action=self.action)
        if self.object:
            kind, _, object_id = self.object.partition(" ")
            rows = rows.filter(kind=kind)
            rows = rows.filter(object_id=object_id) if object_id else rows
        since, until = self.moments()
        rows = rows.filter(at__gte=since) if since else rows
        return rows.filter(at__lt=until) if until else rows


def _moment(text: str, field: str, after_a_date: timedelta) -> datetime | None:
    """The time that `text` names; `after_a_date` is added to a date without a time."""
    if not text:
        return None
    try:
        if day := parse_date(text):
            return (
                datetime(day.year, day.month, day.day, tzinfo=timezone.get_current_timezone()) + after_a_date
            )
        moment = parse_datetime(text)
        if moment is None:
            raise ValueError("neither a date nor a time")
        return moment if moment.tzinfo else timezone.make_aware(moment)
    except (ValueError, OverflowError) as error:
        raise BadValue(
            field, f"'{shortened(text)}' is no date or time like 2026-11-22 or 2026-11-22T08:30"
        ) from error
