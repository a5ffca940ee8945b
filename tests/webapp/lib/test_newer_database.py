"""An older version refuses what a newer one has written, before it changes anything."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from webapp.lib.newer_database import NewerDatabase, applied_migrations, require_known

pytestmark = pytest.mark.django_db


def test_its_own_database_is_known() -> None:
    assert "trajectories.0001_initial" in applied_migrations()
    require_known(applied_migrations(), "the database")


def test_a_newer_database_is_not_started_on() -> None:
    MigrationRecorder(connection).record_applied("trajectories", "9999_of_tomorrow")
    with pytest.raises(CommandError, match=r"newer version \(trajectories.9999_of_tomorrow"):
        call_command("up", prepare_only=True)


def test_what_others_once_applied_does_not_matter() -> None:
    """A library may replace its migrations, or be gone."""
    require_known([*applied_migrations(), "axes.9999_gone", "no_such_app.0001_initial"], "the database")
    with pytest.raises(NewerDatabase, match="^the backup is of a newer version"):
        require_known(["live.9999_of_tomorrow"], "the backup")
