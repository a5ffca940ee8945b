"""Readers of environment variables and the secrets in the data folder."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from training.outgoing.secret_store import stored_secret
from webapp.lib.environment_variables import database_from_url, env_bool, env_int, env_list


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("Yes", True), ("off", False), ("0", False), ("", True)]
)
def test_a_switch_reads_yes_no_and_nothing(monkeypatch, text, expected):
    monkeypatch.setenv("DESKHAND_SWITCH", text)
    assert env_bool("DESKHAND_SWITCH", True) is expected


def test_a_wrong_value_is_refused_with_the_variable_s_name(monkeypatch):
    monkeypatch.setenv("DESKHAND_SWITCH", "maybe")
    with pytest.raises(ValueError, match="DESKHAND_SWITCH=maybe"):
        env_bool("DESKHAND_SWITCH", True)
    with pytest.raises(ValueError, match="DESKHAND_SWITCH=maybe: use a whole number"):
        env_int("DESKHAND_SWITCH", 1)


def test_lists_are_split_at_commas_and_blanks_dropped(monkeypatch):
    monkeypatch.setenv("DESKHAND_NAMES", " a, ,b ")
    assert env_list("DESKHAND_NAMES", []) == ["a", "b"]


def test_a_secret_is_made_once_and_is_for_its_owner_only(tmp_path):
    path = tmp_path / "secrets" / "key"
    assert stored_secret(path) == stored_secret(path)
    assert len(stored_secret(path)) >= 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["key"]


def test_processes_that_start_together_agree_on_the_secret(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(stored_secret, [tmp_path / "key"] * 32))
    assert len(set(made)) == 1


def test_a_postgresql_url_may_name_a_server_or_a_socket_folder():
    server = database_from_url("postgresql://me:p%40ss@db.local:5433/desk?sslmode=require", pooled=False)
    assert (server["HOST"], server["PORT"], server["PASSWORD"]) == ("db.local", "5433", "p@ss")
    assert server["OPTIONS"] == {"sslmode": "require"}
    socket = database_from_url("postgresql://me@/desk?host=%2Frun%2Fpg", pooled=True)
    assert (socket["HOST"], socket["NAME"], socket["USER"]) == ("/run/pg", "desk", "me")
    assert "pool" in socket["OPTIONS"]


def test_sqlite_takes_the_write_lock_at_once_and_keeps_a_write_ahead_log():
    database = database_from_url("sqlite:///data/desk%20hand.sqlite3", pooled=True)
    assert database["NAME"] == "/data/desk hand.sqlite3"
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in database["OPTIONS"]["init_command"]


def test_an_unknown_database_is_refused():
    with pytest.raises(ValueError, match="DATABASE_URL: unknown scheme 'mysql'"):
        database_from_url("mysql://me@host/desk", pooled=False)
