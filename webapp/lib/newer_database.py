"""A database that a newer version has changed is not used by an older one."""

from collections.abc import Iterable

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


class NewerDatabase(Exception):
    """Raised when tables are of a newer version; the message says what to do."""


def applied_migrations() -> list[str]:
    """`application.name` of every change that this database has had."""
    return sorted(".".join(key) for key in MigrationRecorder(connection).applied_migrations())


def require_known(applied: Iterable[str], what: str) -> None:
    """Raise NewerDatabase, calling it `what`, when this version lacks one of our applications' migrations."""
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith("webapp.")}
    known = {".".join(key) for key in MigrationLoader(None, ignore_no_migrations=True).disk_migrations}
    unknown = sorted(name for name in set(applied) - known if name.partition(".")[0] in ours)
    if unknown:
        raise NewerDatabase(
            f"{what} is of a newer version ({unknown[-1]} is not known here). Take that version, or "
            "restore a backup of this one into an empty data folder (docs/running.md, Upgrade and roll back)."
        )
