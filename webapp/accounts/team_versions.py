"""What a team saves under a name, version after version; nothing changes a version once it is saved."""

from __future__ import annotations

import re
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction
from django.db.models import Max

from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Team
from webapp.lib.request_values import BadValue, check_text

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
KEY = re.compile(rf"({NAME.pattern})\.v([0-9]{{1,6}})")


class TeamVersion(models.Model):
    """One version. A model of it has a `team`, what the version says, and a constraint on `VERSION_ONCE`."""

    VERSION_ONCE = ("team", "name", "version")

    name = models.CharField(max_length=60)
    version = models.IntegerField()
    note = models.CharField(max_length=300, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering = ["name", "-version"]

    def __str__(self) -> str:
        return f"{self.name}.v{self.version}"

    @classmethod
    def named(cls, team: Team, key: str) -> Self | None:
        """The team's version that "NAME.vVERSION" names."""
        parts = KEY.fullmatch(key)
        mine = cls._default_manager.filter(team=team)
        return mine.filter(name=parts[1], version=int(parts[2])).first() if parts else None

    @classmethod
    def save_next(
        cls, *, team: Team, user: User, name: str, kind: str, note: str = "", first: int = 1, **values: Any
    ) -> Self:
        """The next version of `name`, at least `first`; `kind` is for the audit log. Raises BadValue."""
        check_text(note, "note")
        if not NAME.fullmatch(name):
            raise BadValue("name", "use a-z, 0-9 and -, at most 60 of them, without a version")
        mine = cls._default_manager.filter(team=team, name=name)
        try:
            with transaction.atomic():
                last = mine.aggregate(last=Max("version"))["last"] or 0
                saved = cls._default_manager.create(
                    team=team,
                    name=name,
                    version=max(first, last + 1),
                    note=note.strip()[:300],
                    owner=user,
                    **values,
                )
                log_action(
                    AuditAction.SAVED, person=user, team=team, kind=kind, object_id=saved, note=saved.note
                )
        except IntegrityError as error:
            raise BadValue("name", "another version was saved at this moment; save again") from error
        return saved
