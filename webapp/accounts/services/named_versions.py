"""Save what a team keeps under a name, version after version."""

from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.named_versions import NAME, TeamVersion
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue, check_text

V = TypeVar("V", bound=TeamVersion)


def save_version(
    model: type[V],
    *,
    team: Team,
    user: User,
    name: str,
    kind: str,
    note: str = "",
    first: int = 1,
    **values: Any,
) -> V:
    """The next version of `name`, at least `first`; `kind` is for the audit log. Raises BadValue."""
    check_text(note, "note")
    if not NAME.fullmatch(name):
        raise BadValue("name", "use a-z, 0-9 and -, at most 60 of them, without a version")
    mine = model._default_manager.filter(team=team, name=name)
    try:
        with transaction.atomic():
            last = mine.aggregate(last=Max("version"))["last"] or 0
            saved = model._default_manager.create(
                team=team,
                name=name,
                version=max(first, last + 1),
                note=note.strip()[:300],
                owner=user,
                **values,
            )
            log_action(AuditAction.SAVED, person=user, team=team, kind=kind, object_id=saved, note=saved.note)
    except IntegrityError as error:
        raise BadValue("name", "another version was saved at this moment; save again") from error
    return saved
