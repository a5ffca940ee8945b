"""Create the first login, once, when there is no user yet."""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction

from webapp.accounts.models import Membership, Role, Team

USERNAME = "admin"
TEAM = "home"
LOGIN_FILE = "first-login.txt"


class Command(BaseCommand):
    help = "Create the user 'admin' with a generated password when there is no user yet."

    def handle(self, *args: Any, **options: Any) -> None:
        password = create_first_admin()
        if password is None:
            answer = "There are users already: nothing to do."
        else:
            path = write_login(Path(settings.DATA_DIR) / LOGIN_FILE, password)
            answer = f"First login: {USERNAME} / {password}  (kept in {path})"
        if options["verbosity"]:
            self.stdout.write(answer)


@transaction.atomic
def create_first_admin() -> str | None:
    """Make the admin of the team "home" and return the password; None when any user exists."""
    users = get_user_model().objects
    if users.exists():
        return None
    password = secrets.token_urlsafe(12)
    admin = users.create_superuser(username=USERNAME, password=password)
    team, _ = Team.objects.get_or_create(name=TEAM)
    Membership.objects.create(team=team, user=admin, role=Role.ADMIN)
    return password


def write_login(path: Path, password: str) -> Path:
    """Keep the login where only this account can read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"username: {USERNAME}\npassword: {password}\n")
    return path
