"""`manage.py backup FILE`: database, screenshots and the list of checkpoints, while everything goes on."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from webapp.retention.backup.archive import NothingToBackUp, write_backup
from webapp.retention.backup.database_copy import CopyFailed
from webapp.retention.backup.passphrase import read_passphrase


class Command(BaseCommand):
    help = "Write a backup of this installation into one file."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--secrets", type=Path, metavar="PASSPHRASE_FILE", help="secrets too, encrypted")

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["file"].absolute()
        if not target.parent.is_dir():
            raise CommandError(f"there is no folder {target.parent}")
        try:
            manifest = write_backup(target, passphrase=read_passphrase(options["secrets"]))
        except (NothingToBackUp, CopyFailed, OSError, ValueError) as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            raise CommandError(f"the database cannot be read: {error}") from error
        self.stdout.write(json.dumps(manifest | {"file": str(target), "bytes": target.stat().st_size}))
