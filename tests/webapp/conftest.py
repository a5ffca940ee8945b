"""Who is signed in, for the files that do not ask for more."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from testing.factories import make_user
from webapp.accounts.models import Role


@pytest.fixture
def operator(client: Client) -> User:
    user = make_user(Role.OPERATOR)
    client.force_login(user)
    return user
