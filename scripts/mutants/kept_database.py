"""A pytest plugin: SQLite's test database is migrated once and then copied. No change touches a migration."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "DESKHAND_MUTANTS_DATABASE"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings
    from django.db.backends.sqlite3.creation import DatabaseCreation

    kept, migrate = Path(os.environ[VARIABLE]), DatabaseCreation.create_test_db

    def create_test_db(self: Any, *args: Any, **options: Any) -> str:
        if not kept.exists():
            name = migrate(self, *args, **options)
            self.connection.close()
            part = kept.with_suffix(f".{os.getpid()}")
            with sqlite3.connect(name) as database:
                database.execute("VACUUM INTO ?", [str(part)])
            part.replace(kept)
            return name
        name = self._get_test_db_name()
        shutil.copy(kept, name)
        self.connection.close()
        settings.DATABASES[self.connection.alias]["NAME"] = self.connection.settings_dict["NAME"] = name
        self.connection.ensure_connection()
        return name

    DatabaseCreation.create_test_db = create_test_db
