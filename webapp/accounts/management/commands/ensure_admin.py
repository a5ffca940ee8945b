"""Create the first login, once, when there is no user yet."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.accounts.services.members import FIRST_ADMIN, create_first_admin

LOGIN_FILE = "first-login.txt"


class Command(BaseCommand):
    help = "Create the user 'admin' with a generated password when there is no user yet."

    def handle(self, *args: Any, **options: Any) -> None:
        password = create_first_admin()
        if password is None:
            answer = "There are users already: nothing to do."
        else:
            path = write_login(Path(settings.DATA_DIR) / LOGIN_FILE, password)
            answer = f"First login: {FIRST_ADMIN} / {password}  (kept in {path})"
        if options["verbosity"]:
            self.stdout.write(answer)


def write_login(path: Path, password: str) -> Path:
    """Keep the login where only this account can read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"username: {FIRST_ADMIN}\npassword: {password}\n")
    return path
