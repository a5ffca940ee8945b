"""A policy that reads only the tree solves its task on desktops that come from elsewhere."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from deskhand_client.desktop_session import DesktopSession

from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from testing.workers.gateway_cluster import SECRET_VARIABLE
from testing.workers.osworld_gateway import knobs, running_gateway
from testing.workers.text_policy import CHOOSE, press_crimson
from training.contracts.config import GatewayConfig, RemoteConfig
from training.contracts.types import ActionKind
from training.tasks.task_json import to_osworld
from workers.desktops.desktop_texts import Reads, ReadText
from workers.desktops.host.client import DeskHostClient
from workers.env_server.episodes import Episodes
from workers.environments.contract import Environment, EnvironmentRequest
from workers.environments.gateway.sandbox_environment import GatewayEnvironment
from workers.environments.local import LocalEnvironment
from workers.environments.registry import ENVIRONMENTS

pytestmark = [pytest.mark.desktop, pytest.mark.slow]

READS = Reads(tree=True, terminal=True)
MOST_TURNS = 4


def play(environment: Environment) -> float:
    """The score of the policy."""
    try:
        environment.prepare(CHOOSE)
        for _ in range(MOST_TURNS):
            texts = environment.observe().texts
            assert texts.terminal == ReadText("")
            assert texts.tree is not None
            action = press_crimson(texts.tree.text or "")
            if action.kind is ActionKind.TERMINATE:
                break
            environment.act(action)
        return environment.evaluate(CHOOSE, action)
    finally:
        environment.close()


@pytest.fixture
def episodes(desk_client) -> Iterator[Episodes]:
    held = episodes_over(desk_client)
    yield held
    held.close_all()


@pytest.fixture
def url(episodes) -> Iterator[str]:
    with serving(application(episodes)) as url:
        yield url


def test_through_the_env_server_as_provider_remote(url, monkeypatch, redis_client) -> None:
    monkeypatch.setenv("DESKHAND_SECRET_ENV_SERVER", TOKEN)
    section = RemoteConfig.model_validate({"urls": [url], "token_secret": "env-server"})
    request = EnvironmentRequest("remote", CHOOSE.screen, "tests", section, reads=READS)
    assert play(ENVIRONMENTS["remote"](request)) == 1.0


def test_through_openenv(url) -> None:
    session = DesktopSession(url, TOKEN)
    seen = session.reset(
        task=to_osworld(CHOOSE),
        max_turns=MOST_TURNS,
        require_a11y_tree=True,
        require_terminal=True,
        reward_preset="slime-osworld.v2",
    )
    while not seen.is_done:
        assert seen.accessibility_tree.startswith("<desktop-frame ")
        seen = session.step(command=press_crimson(seen.accessibility_tree).model_dump(mode="json"))
    assert seen.facts["score"] == 1.0
    terms = {term["name"]: term["contribution"] for term in seen.facts["terms"]}
    assert terms["a11y_change.v2"] > 0, "the reward is of what the trees said"
    assert session.reset(task=to_osworld(CHOOSE)).accessibility_tree == "", (
        "texts come where they are asked for"
    )
    session.close()


def test_through_a_gateway_of_osworlds_in_guest_servers(
    desk_client, tmp_path, monkeypatch, redis_client
) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, TOKEN)

    def lend(request: EnvironmentRequest) -> LocalEnvironment:
        """Every sandbox's programs publish their widgets, as on OSWorld's machines."""
        client = DeskHostClient(desk_client.socket_path)
        return LocalEnvironment.lease(client, replace(request, reads=READS), wait_s=0.0, ttl_s=30.0)

    with running_gateway(desk_client, tmp_path, 1, lend) as cluster:
        section = GatewayConfig.model_validate(knobs(cluster))
        request = EnvironmentRequest("gateway", CHOOSE.screen, "tests", section, "", reads=READS)
        assert play(GatewayEnvironment.open(request)) == 1.0
        assert len(cluster.door.seen("GET", "/accessibility")) >= 2
        cluster.episodes.close_all()
