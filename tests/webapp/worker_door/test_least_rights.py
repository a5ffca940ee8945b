"""What web, env and gpu workers of a cluster may and may not do, on a real PostgreSQL and a real Redis."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import redis
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import ProgrammingError, connection, transaction
from psycopg.errors import InsufficientPrivilege

from webapp.worker_door.least_rights import PREFIX, RIGHTS, make_postgres_role, make_redis_user

pytestmark = [pytest.mark.django_db, pytest.mark.db]
NONE_OF_A_WORKERS = (
    "auth_user",
    "accounts_apitoken",
    "accounts_oidcidentity",
    "accounts_auditentry",
    "django_session",
    "fleet_jointoken",
    "otp_totp_totpdevice",
    "notifications_notificationrule",
)


@pytest.fixture
def roles() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("roles are PostgreSQL's: DESKHAND_TEST_DB=postgres")
    for name, rights in RIGHTS.items():  # goes with the test's transaction
        make_postgres_role(PREFIX + name, "x", rights)


def may(role: str, statement: str) -> bool:
    """Whether the role may carry it out; nothing stays of it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {PREFIX}{role}")
            cursor.execute(statement)
            transaction.set_rollback(True)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, InsufficientPrivilege):
            raise
        return False
    return True


@pytest.mark.parametrize("role", ["env", "gpu"])
def test_a_worker_reads_no_password_session_or_token(roles: None, role: str):
    denied = [table for table in NONE_OF_A_WORKERS if not may(role, f"SELECT * FROM {table} LIMIT 1")]
    assert denied == list(NONE_OF_A_WORKERS)
    assert may(role, "SELECT id, username FROM auth_user LIMIT 1")
    assert not may(role, "SELECT digest FROM fleet_joinedhost LIMIT 1")
    assert not may(role, "UPDATE accounts_membership SET role = 'admin'")


@pytest.mark.parametrize(
    ("statement", "who"),
    [
        ("UPDATE trajectories_trajectory SET reward = 1 WHERE false", {"web", "env", "gpu"}),
        ("UPDATE trajectories_frame SET width = 1 WHERE false", {"web", "env"}),
        ("UPDATE fleet_desktop SET width = 1 WHERE false", {"web", "env"}),
        ("UPDATE experiments_checkpointrecord SET step = 1 WHERE false", {"web", "gpu"}),
        ("UPDATE experiments_metricpoint SET step = 1 WHERE false", {"web", "gpu"}),
        ("UPDATE replay_replayentry SET id = 1 WHERE false", {"web", "gpu"}),
        ("UPDATE auth_user SET is_superuser = true WHERE false", {"web"}),
        ("INSERT INTO live_stream (name, last_seq) VALUES ('x', 1)", {"web", "env", "gpu"}),
        ("UPDATE django_migrations SET app = 'x' WHERE false", set()),
        ("DROP TABLE auth_user CASCADE", set()),
        ("CREATE TABLE mine (id int)", set()),
        ("CREATE ROLE another", set()),
    ],
)
def test_each_role_writes_what_its_work_writes(roles: None, statement: str, who: set[str]):
    assert {role for role in RIGHTS if may(role, statement)} == who


@pytest.fixture
def users() -> Iterator[dict[str, redis.Redis]]:
    """Connections to the session's Redis as each of the roles."""
    owner = redis.Redis.from_url(os.environ["REDIS_URL"])
    parts = urlsplit(os.environ["REDIS_URL"])
    tag, found = secrets.token_hex(4), {}
    for name, rights in RIGHTS.items():
        make_redis_user(owner, f"{name}-{tag}", "pw", rights)
        found[name] = redis.Redis(
            parts.hostname or "", parts.port or 0, username=f"{name}-{tag}", password="pw"
        )
    yield found
    for name, client in found.items():
        client.close()
        owner.acl_deluser(f"{name}-{tag}")


def allowed(client: redis.Redis, *words: str) -> bool:
    try:
        client.execute_command(*words)
    except redis.exceptions.NoPermissionError:
        return False
    return True


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (("LLEN", "env"), {"web", "env", "gpu"}),
        (("LLEN", "env\x06\x163"), {"web", "env", "gpu"}),
        (("LLEN", "gpu"), {"web", "gpu"}),
        (("LLEN", "gpu@gpu@other"), {"web", "gpu"}),
        (("GET", "sessions:1"), {"web"}),
        (("PUBLISH", "deskhand__group__live.fleet", ""), {"web", "env", "gpu"}),
        (("PUBLISH", "another", ""), {"web"}),
        (("HGETALL", "unacked"), {"web", "env", "gpu"}),
        (("INFO",), {"web"}),
        (("KEYS", "*"), set()),
        (("FLUSHALL",), set()),
        (("CONFIG", "GET", "requirepass"), set()),
        (("ACL", "LIST"), set()),
    ],
)
def test_each_user_of_redis_does_what_its_work_needs(users, words: tuple[str, ...], who: set[str]):
    assert {name for name, client in users.items() if allowed(client, *words)} == who


def test_on_sqlite_the_command_says_what_it_needs():
    if connection.vendor == "postgresql":
        pytest.skip("this is PostgreSQL")
    with pytest.raises(CommandError, match="DATABASE_URL"):
        call_command("make_roles")
