"""Waiting for a database that is really locked, a disk that is really full; all else is told at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from testing.small_disk import leave_free, make_room, small_disk
from webapp.lib import outage_retries
from webapp.lib.environment_variables import sqlite_database
from webapp.lib.outage_retries import patiently, working_time


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.sqlite3"


@pytest.fixture
def database(file: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[BaseDatabaseWrapper]:
    """The product's own kind of SQLite connection, impatient."""
    values = sqlite_database(file)
    values["OPTIONS"] |= {"timeout": 0.01}
    with django_db_blocker.unblock():
        opened = ConnectionHandler({"default": values})["default"]
        with opened.cursor() as cursor:
            cursor.execute("CREATE TABLE rows (value int)")
        yield opened
        opened.close()


def test_a_locked_database_is_waited_for(database: BaseDatabaseWrapper, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    tries = 0

    def write() -> int:
        nonlocal tries
        tries += 1
        if tries == 3:
            other.execute("COMMIT")
        with database.cursor() as cursor:
            return cursor.execute("INSERT INTO rows VALUES (7)").rowcount

    assert patiently(write) == 1
    assert tries == 3
    assert other.execute("SELECT value FROM rows").fetchall() == [(7,)], "once"
    other.close()


def test_a_missing_table_is_told_at_once(database: BaseDatabaseWrapper) -> None:
    tries = []

    def read() -> None:
        tries.append(1)
        with database.cursor() as cursor:
            cursor.execute("SELECT * FROM absent")

    with pytest.raises(OperationalError, match="no such table"):
        patiently(read)
    assert len(tries) == 1


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        leave_free(disk, 0)
        tries = []

        def write() -> None:
            tries.append(1)
            if len(tries) == 2:
                make_room(disk)
            (disk / "frame").write_bytes(b"x" * 100_000)

        patiently(write)
        assert (disk / "frame").stat().st_size == 100_000
        assert len(tries) == 2


def test_patience_ends(monkeypatch: pytest.MonkeyPatch, database: BaseDatabaseWrapper, file: Path) -> None:
    monkeypatch.setattr(outage_retries, "PATIENCE_S", 0.0)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    def write() -> None:
        with database.cursor() as cursor:
            cursor.execute("INSERT INTO rows VALUES (7)")

    with pytest.raises(OperationalError, match="locked"):
        patiently(write)
    other.close()


@pytest.mark.django_db
def test_inside_a_transaction_nothing_is_repeated() -> None:
    tries = []

    def fail() -> None:
        tries.append(1)
        raise OperationalError("database is locked")

    with transaction.atomic():
        assert connection.in_atomic_block
        with pytest.raises(OperationalError):
            patiently(fail)
    assert len(tries) == 1


def test_a_trajectorys_time_stands_still_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    monkeypatch.setattr(outage_retries.time, "monotonic", lambda: seconds[0])
    before = working_time()

    def lock() -> None:
        seconds[0] += 30

    patiently(lock)
    seconds[0] += 1
    assert working_time() - before == 1
