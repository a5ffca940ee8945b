"""`manage.py restore FILE`: fill an empty installation from a backup."""

import json
import tarfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.lib.newer_database import NewerDatabase
from webapp.retention.backup.archive import CannotRestore, restore_backup
from webapp.retention.backup.database_copy import CopyFailed
from webapp.retention.backup.passphrase import read_passphrase
from webapp.retention.backup.sealed_secrets import WrongPassphrase

REFUSALS = (
    CannotRestore, NewerDatabase, CopyFailed, WrongPassphrase, OSError, ValueError, tarfile.TarError,
)  # fmt: skip


class Command(BaseCommand):
    help = "Fill an empty installation from a backup; its experiments are paused."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--secrets", type=Path, metavar="PASSPHRASE_FILE", help="restore secrets, too")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            restored = restore_backup(options["file"], passphrase=read_passphrase(options["secrets"]))
        except REFUSALS as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(restored))
