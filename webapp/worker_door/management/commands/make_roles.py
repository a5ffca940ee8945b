"""Roles of PostgreSQL and users of Redis with least rights, for web, env and gpu workers of a cluster.

Runs as the owner of the database and with Redis' own password; again after each upgrade, for new tables.
"""

import os
import secrets
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from webapp.worker_door.least_rights import PREFIX, RIGHTS, make_postgres_role, make_redis_user


class Command(BaseCommand):
    help = (
        "Make or renew the roles web, env and gpu in PostgreSQL and Redis, and print the variables of each. "
        "Passwords: DESKHAND_WEB_PASSWORD, DESKHAND_ENV_PASSWORD, DESKHAND_GPU_PASSWORD, else new ones."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("DATABASE_URL: roles are PostgreSQL's; this installation has SQLite")
        store = redis.Redis.from_url(settings.REDIS_URL)
        for name, rights in RIGHTS.items():
            given = os.environ.get(f"DESKHAND_{name.upper()}_PASSWORD")
            password, role = given or secrets.token_hex(24), f"{PREFIX}{name}"
            with transaction.atomic():
                make_postgres_role(role, password, rights)
            make_redis_user(store, role, password, rights)
            if not given:
                database = _as_user(settings.DATABASE_URL, role, password)
                self.stdout.write(f"# {name}\nDATABASE_URL={database}")
                self.stdout.write(f"REDIS_URL={_as_user(settings.REDIS_URL, role, password)}")
        try:
            store.acl_save()
        except redis.ResponseError as error:
            self.stderr.write(f"Redis forgets its users when it starts anew; set its `aclfile` ({error})")


def _as_user(url: str, user: str, password: str) -> str:
    """The same place, as someone else."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}"))
