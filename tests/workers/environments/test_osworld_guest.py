"""Vendor `osworld-guest`: OSWorld's in-guest protocol through a gateway, on real desktops that speak it."""

from collections.abc import Iterator

import pytest

from testing.workers.asgi_faults import Fault
from testing.workers.env_server_thread import TOKEN
from testing.workers.gateway_cluster import OWNER, SECRET_VARIABLE, Cluster
from testing.workers.osworld_gateway import SESSION_HEADER, TOKEN_HEADER, knobs, running_gateway
from training.content.task_sets.first_desk import generate
from training.contracts.config import GatewayConfig
from training.contracts.config.providers.gateway import VENDORS
from training.contracts.types import Action, ActionKind
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.gateway.open_vendor import BUILT_IN
from workers.environments.gateway.osworld_guest.vendor import OsworldGuestVendor
from workers.environments.gateway.sandbox_environment import GatewayEnvironment
from workers.environments.gateway.vendor_contract import Sandbox, SandboxRequest
from workers.environments.registry import AtCapacity, EnvironmentRequest

pytestmark = pytest.mark.desktop

TASKS = {task.task_id: task for task in generate()}
NOTE = TASKS["first-desk/note/0000"]
DONE = Action(kind=ActionKind.TERMINATE, status="success")
CLICK = Action(kind=ActionKind.CLICK, x=5, y=5)


@pytest.fixture(scope="module")
def whole_cluster(desk_client, tmp_path_factory) -> Iterator[Cluster]:
    with running_gateway(desk_client, tmp_path_factory.mktemp("tls"), 1) as cluster:
        yield cluster


@pytest.fixture
def cluster(whole_cluster, monkeypatch, redis_client) -> Iterator[Cluster]:
    monkeypatch.setenv(SECRET_VARIABLE, TOKEN)
    whole_cluster.behave()
    yield whole_cluster
    whole_cluster.behave()


def opened(cluster: Cluster, **changes: object) -> GatewayEnvironment:
    section = GatewayConfig.model_validate(knobs(cluster, **changes))
    return GatewayEnvironment.open(EnvironmentRequest("gateway", NOTE.screen, "tests", section, ""))


@pytest.fixture
def environment(cluster) -> Iterator[GatewayEnvironment]:
    environment = opened(cluster)
    yield environment
    environment.close()


def test_the_config_names_every_vendor_of_ours():
    assert set(BUILT_IN) == set(VENDORS)


def test_an_oracle_solves_a_task_by_osworlds_routes_and_headers_alone(cluster):
    environment = opened(cluster)
    session = environment.sandbox.session_id
    environment.prepare(NOTE)
    environment.observe()
    assert environment.evaluate(NOTE, None) == 0.0
    environment.reset()
    environment = opened(cluster)
    environment.prepare(NOTE)
    for action in NOTE.oracle["actions"][:-1]:
        environment.act(Action.model_validate(action))
    environment.observe()
    assert environment.evaluate(NOTE, DONE) == 1.0
    environment.close()
    assert cluster.episodes.held() == []
    inside = [each for each in cluster.door.requests if not each[1].startswith("/v1/")]
    assert {path for _, path, _ in inside} == {
        *("/platform", "/screen_size", "/screenshot", "/execute", "/setup/launch"),
    }
    assert {headers[TOKEN_HEADER] for *_, headers in inside} == {TOKEN}
    assert {headers[SESSION_HEADER] for *_, headers in inside} == {session, environment.sandbox.session_id}


def test_a_guest_that_still_boots_is_waited_for_and_one_that_never_does_is_given_back(cluster):
    booting = {"status": 502, "method": "GET"}
    cluster.door.faults = [Fault("/platform", times=2, **booting)]
    opened(cluster).close()
    cluster.door.faults = [Fault("/platform", times=999, **booting)]
    with pytest.raises(EnvError, match="answered GET /platform with 502"):
        opened(cluster, create_timeout_s=2)
    assert cluster.episodes.held() == []


def test_an_action_is_never_sent_twice_and_a_screenshot_is(cluster, environment):
    cluster.door.faults = [Fault("/execute", status=502)]
    with pytest.raises(EnvError, match="POST /execute with 502") as caught:
        environment.act(CLICK)
    assert caught.value.kind is ErrorKind.INFRA
    cluster.door.faults = [Fault("/screenshot", method="GET", status=502, headers={"retry-after": "0"})]
    assert environment.observe().width == 512
    assert len(cluster.door.seen("POST", "/execute")) == 1


def test_what_pyautogui_refuses_is_the_agents_mistake_and_what_the_guest_cannot_run_is_not(environment):
    with pytest.raises(EnvError) as caught:
        environment.act(Action(kind=ActionKind.KEY, keys=("é",)))
    assert caught.value.kind is ErrorKind.TASK
    with pytest.raises(EnvError, match="in the sandbox") as caught:
        environment.desktop.agent.execute(["no-such-program"])
    assert caught.value.kind is ErrorKind.GUEST


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ({"status": 200, "body": {}}, "no PNG or JPEG"),
        ({"status": 401, "body": {"message": "expired"}}, "check the secret sandbox-token"),
        ({"status": 404, "body": {"message": "gone"}}, "session is over"),
    ],
)
def test_an_answer_that_is_no_screenshot_says_why(cluster, environment, answer, part):
    cluster.door.faults = [Fault("/screenshot", method="GET", **answer)]
    with pytest.raises(EnvError, match=part):
        environment.desktop.console.image()


def test_a_windows_guest_is_refused_before_a_task_is_set_up(cluster):
    cluster.door.faults = [Fault("/platform", method="GET", status=200, body={"Windows": 1})]
    with pytest.raises(EnvError, match="provider gateway drives Linux alone") as caught:
        opened(cluster)
    assert caught.value.permanent
    assert cluster.episodes.held() == []


class Sdk:
    """As AReaL's client describes a vendor's package: it starts and stops, and names the session."""

    def __init__(self, cluster: Cluster, settings: GatewayConfig) -> None:
        self._inner = OsworldGuestVendor(settings, TOKEN)
        self._cluster = cluster
        self.session_id = ""

    def sandbox_start(self, body: dict[str, str], call_timeout: float) -> dict[str, str]:
        request = SandboxRequest(image="", width=512, height=384, owner=OWNER, key="sdk")
        self._sandbox = self._inner.start(request)
        self.session_id = self._sandbox.session_id
        return {"sandboxId": "from-the-sdk"}

    def sandbox_stop(self, call_timeout: float) -> None:
        self._inner.delete(self._sandbox)


class SdkVendor(OsworldGuestVendor):
    """What docs/remote.md tells users of such a package to write."""

    def __init__(self, section: GatewayConfig, token: str) -> None:
        super().__init__(section, token)
        self._tool = Sdk(CLUSTERS[-1], section)

    def start(self, request: SandboxRequest) -> Sandbox:
        started = self._tool.sandbox_start(body={}, call_timeout=180)
        return Sandbox(
            sandbox_id=started["sandboxId"],
            session_id=self._tool.session_id,
            owner=request.owner,
            key=request.key,
            width=request.width,
            height=request.height,
        )

    def owned(self, owner: str) -> list[Sandbox]:
        return []

    def delete(self, sandbox: Sandbox) -> None:
        self._tool.sandbox_stop(call_timeout=60)


CLUSTERS: list[Cluster] = []


def test_a_vendors_package_may_start_and_stop_the_sandboxes(cluster, settings):
    CLUSTERS.append(cluster)
    name = f"{__name__}:SdkVendor"
    settings.GATEWAY_VENDORS = [name]
    environment = opened(cluster).close() or opened(cluster, vendor=name)
    assert environment.sandbox.sandbox_id == "from-the-sdk"
    assert environment.observe().width == 512
    environment.close()
    assert cluster.episodes.held() == []
    held = opened(cluster)
    with pytest.raises(AtCapacity):
        opened(cluster, vendor=name)
    held.close()
