"""The one function that writes the audit log; services call it inside their transaction.

What did not happen leaves no row, and nothing that is logged happens without its row.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Exists, QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction, AuditEntry, Membership, Team

COMMAND_LINE = "command line"
"""Who did it when no person is named."""
VIEWING_SESSION = timedelta(minutes=15)
"""Looking at the same thing again within this time is the same session: a reload, a lost connection."""
PRUNE_CHUNK = 5000


def log_action(
    action: AuditAction,
    *,
    person: AbstractBaseUser | str | None,
    team: Team | int | None = None,
    kind: str = "",
    object_id: object = "",
    **detail: Any,
) -> None:
    """Add a row. `kind` and `object_id` name the object ("experiment", 12); `detail` is what else to know.

    `person` is an account, or a name without one; None is a command of `manage.py`.
    """
    account = person if isinstance(person, AbstractBaseUser) else None
    AuditEntry.objects.create(
        action=action,
        person_id=account.pk if account else None,
        person_name=account.get_username() if account else str(person or COMMAND_LINE),
        team_id=team.pk if isinstance(team, Team) else team,
        kind=kind,
        object_id=str(object_id)[:150],
        detail=detail,
    )


def viewing_session(*, person: AbstractBaseUser, kind: str, object_id: object, how: str) -> Exists:
    """Whether a session of watching is noted already: for a page that reads it with its first row."""
    return Exists(_viewings(person, kind, object_id, how))


def _viewings(person: AbstractBaseUser, kind: str, object_id: object, how: str) -> QuerySet[AuditEntry]:
    since = timezone.now() - VIEWING_SESSION
    known = AuditEntry.objects.filter(kind=kind, object_id=str(object_id), at__gte=since)
    return known.filter(action=AuditAction.WATCHED, person_id=person.pk, detail={"how": how})


def log_viewing(
    *,
    person: AbstractBaseUser,
    team: Team | int,
    kind: str,
    object_id: object,
    how: str,
    is_known: bool | None = None,
) -> None:
    """Note that a person looks at a live screen, once per session. `how`: the page that shows it.

    `is_known` is what `viewing_session` said; without it the log is asked.
    """
    if is_known is None:
        is_known = _viewings(person, kind, object_id, how).exists()
    if not is_known:
        log_action(AuditAction.WATCHED, person=person, team=team, kind=kind, object_id=object_id, how=how)


def only_team(person: AbstractBaseUser) -> int | None:
    """The one team of an account, whose admins see its sign-ins; None when several teams, or none, have it.

    An admin can add any account to a team, which must not be a way to see what it does elsewhere.
    """
    teams = list(Membership.objects.filter(user=person.pk).values_list("team_id", flat=True)[:2])
    return teams[0] if len(teams) == 1 else None


def prune_audit_log() -> int:
    """Delete rows older than DESKHAND_AUDIT_DAYS (0 = none); returns how many. Small chunks, short locks."""
    if not settings.AUDIT_DAYS:
        return 0
    old = AuditEntry.objects.filter(at__lt=timezone.now() - timedelta(days=settings.AUDIT_DAYS))
    num_deleted = 0
    while chunk := list(old.values_list("pk", flat=True)[:PRUNE_CHUNK]):
        num_deleted += AuditEntry.objects.filter(pk__in=chunk).delete()[0]
    return num_deleted
