"""What a team saves under a name, version after version; nothing changes a version once it is saved."""

import re
from typing import Self

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team

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
