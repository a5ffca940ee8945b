"""One moment of the database as a file, and back: SQLite's online backup, or pg_dump and pg_restore."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection

NAMES = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}
"""Kind of database -> the file's name in a backup."""
DEBIAN_PROGRAMS = "usr/lib/postgresql"


class CopyFailed(Exception):
    """Raised when the database could not be copied; the message says why."""


def dump_database(folder: Path) -> Path:
    """Copy the database into `folder` while others write. Raises CopyFailed."""
    path = folder / NAMES[connection.vendor]
    if connection.vendor == "postgresql":
        _run("pg_dump", "--format=custom", "--no-owner", "--file", str(path))
        return path
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as target:
        # All pages in one step: a reader's snapshot, which holds up no writer.
        connection.connection.backup(target)
        target.execute("PRAGMA journal_mode=WAL")
    return path


def load_database(path: Path) -> None:
    """Fill the empty database of this installation. Raises CopyFailed."""
    if connection.vendor == "postgresql":
        _run("pg_restore", "--no-owner", "--exit-on-error", "--dbname", _database(), str(path))
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as source:
        source.backup(connection.connection)
    connection.close()


def is_empty() -> bool:
    """Whether the database has no table yet."""
    return not connection.introspection.table_names()


def _database() -> str:
    return str(connection.settings_dict["NAME"])


def _run(program: str, *arguments: str) -> None:
    values = connection.settings_dict
    options = {"--host": values["HOST"], "--port": values["PORT"], "--username": values["USER"]}
    command = [_find(program), *(part for name, text in options.items() if text for part in (name, text))]
    if program == "pg_dump":
        command += ["--dbname", _database()]
    environment = {**os.environ, "PGPASSWORD": str(values["PASSWORD"] or "")}
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CopyFailed(f"{program} failed: {done.stderr.strip()[-800:]}")


def _find(program: str) -> str:
    """On PATH, or the newest of Debian's versions."""
    versions = Path("/", DEBIAN_PROGRAMS).glob(f"*/bin/{program}")
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    found = shutil.which(program) or (str(newest) if newest else None)
    if found is None:
        raise CopyFailed(f"{program} is not installed: apt-get install postgresql-client")
    return found
