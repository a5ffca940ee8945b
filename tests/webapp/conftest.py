"""Who is signed in, for the files that do not ask for more, and a world that stays for a file."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoDbBlocker

from testing.factories import make_user
from testing.session.emptied_tables import empty_tables
from testing.web_world import World, make_world
from webapp.accounts.models import Role


@pytest.fixture
def operator(client: Client) -> User:
    user = make_user(Role.OPERATOR)
    client.force_login(user)
    return user


@pytest.fixture(scope="module")
def lasting_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """What tests change of it is rolled back with their transaction: it is for hundreds of quick ones."""
    with django_db_blocker.unblock():
        world = make_world()
    yield world
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture(scope="module")
def sessions(lasting_world: World, django_db_blocker: DjangoDbBlocker) -> dict[str, str]:
    """Person -> the cookie of a session."""
    found = {}
    with django_db_blocker.unblock():
        for person, user in lasting_world.users.items():
            client = Client()
            client.force_login(user)
            found[person] = client.cookies[settings.SESSION_COOKIE_NAME].value
    return found


@pytest.fixture
def clients(sessions: dict[str, str], db: None) -> dict[str, Client]:
    """A client of each person, and of `anonymous`; errors of views become answers, as in production."""
    found = {person: Client(raise_request_exception=False) for person in (*sessions, "anonymous")}
    for person, cookie in sessions.items():
        found[person].cookies[settings.SESSION_COOKIE_NAME] = cookie
    return found
