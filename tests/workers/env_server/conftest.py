"""An env server of two desktops, and its client."""

from collections.abc import Iterator

import pytest

from testing.workers.env_server_client import Client
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving


@pytest.fixture(scope="module")
def episodes(desk_client):
    return episodes_over(desk_client)


@pytest.fixture(scope="module")
def server(episodes) -> Iterator[str]:
    with serving(application(episodes)) as url:
        yield url


@pytest.fixture
def client(server, episodes) -> Iterator[Client]:
    """Its token stands in the URL: neither Slime's nor AReaL's client can send a header."""
    yield Client(f"{server}/token/{TOKEN}")
    episodes.close_all()
