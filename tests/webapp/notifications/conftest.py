"""An admin, a receiver on this machine, and an installation that may send there."""

import pytest

from testing.factories import make_team, make_user
from testing.http_receiver import HttpReceiver
from training.outgoing.remote_addresses import read_networks


@pytest.fixture(autouse=True)
def installation(settings, tmp_path):
    settings.REMOTE_NETWORKS = read_networks(["127.0.0.0/8"])
    settings.SECRETS_DIR = tmp_path / "secrets"
    settings.SECRETS_DIR.mkdir()


@pytest.fixture
def receiver():
    with HttpReceiver() as found:
        yield found


@pytest.fixture
def admin():
    return make_user("admin", team=make_team("home"), name="ada")
