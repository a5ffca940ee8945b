"""The provider `gateway` against a local HTTPS cluster that misbehaves on demand."""

from collections.abc import Iterator

import pytest

from testing.workers.asgi_faults import Fault
from testing.workers.env_server_thread import TOKEN
from testing.workers.gateway_cluster import OWNER, SECRET_VARIABLE, Cluster, running_cluster
from training.content.task_sets.first_desk import generate
from training.contracts.config import GatewayConfig
from training.contracts.types import Action, ActionKind, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.back_off import FIRST_PAUSE_S, NUM_FREE, BackOff
from workers.environments.gateway.delete_unused_sandboxes import delete_everywhere, delete_unused
from workers.environments.gateway.sandbox_environment import GatewayEnvironment
from workers.environments.gateway.vendor_contract import Sandbox, SandboxRequest, SandboxVendor
from workers.environments.http_transport import retry_after_s
from workers.environments.registry import AtCapacity, EnvironmentRequest

pytestmark = pytest.mark.desktop

TASKS = {task.task_id: task for task in generate()}
COLOUR = TASKS["first-desk/colour/0000"]
DONE = Action(kind=ActionKind.TERMINATE, status="success")
CREATE = "/v1/sandboxes"


@pytest.fixture(scope="module")
def whole_cluster(desk_client, tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(desk_client, tmp_path_factory.mktemp("tls"), 2) as cluster:
        yield cluster


@pytest.fixture
def cluster(whole_cluster, monkeypatch, redis_client) -> Iterator[Cluster]:
    monkeypatch.setenv(SECRET_VARIABLE, TOKEN)
    whole_cluster.behave()
    yield whole_cluster
    whole_cluster.behave()


def request_for(cluster: Cluster, key: str = "", **changes: object) -> EnvironmentRequest:
    knobs = GatewayConfig.model_validate(cluster.knobs(**changes))
    return EnvironmentRequest("gateway", COLOUR.screen, "tests", knobs, key)


@pytest.fixture
def environment(cluster) -> Iterator[GatewayEnvironment]:
    environment = GatewayEnvironment.open(request_for(cluster))
    yield environment
    environment.close()


def play(environment: GatewayEnvironment, task: Task = COLOUR) -> float:
    """The score of the task's oracle."""
    environment.prepare(task)
    environment.observe()
    for action in task.oracle["actions"][:-1]:
        environment.act(Action.model_validate(action))
        environment.observe()
    return environment.evaluate(task, DONE)


@pytest.mark.parametrize("family", ["menu", "note", "form"])
def test_an_oracle_solves_a_task_in_a_rented_sandbox(cluster, family):
    environment = GatewayEnvironment.open(request_for(cluster))
    assert play(environment, TASKS[f"first-desk/{family}/0000"]) == 1.0
    (sandbox,) = cluster.episodes.held(OWNER)
    assert environment.sandbox.sandbox_id == sandbox.episode_id
    environment.reset()
    assert environment.is_lost
    assert cluster.episodes.held() == []
    (deleted,) = cluster.door.seen("DELETE", f"{CREATE}/{sandbox.episode_id}")
    assert deleted["x-secret-token"] == TOKEN
    sessions = {each["x-session-id"] for each in cluster.door.seen("GET", "/v1/screenshot")}
    assert sessions == {sandbox.episode_id}


def test_doing_nothing_is_worth_nothing(environment):
    environment.prepare(COLOUR)
    assert environment.evaluate(COLOUR, None) == 0.0


@pytest.mark.parametrize("status", [500, 502, 503])
def test_errors_of_the_cluster_are_tried_again(cluster, status):
    paths = [("POST", CREATE), ("POST", "/v1/launch"), ("POST", "/v1/input"), ("GET", "/v1/screenshot")]
    cluster.door.faults = [
        Fault(path, times=2, method=method, status=status, headers={"retry-after": "0"})
        for method, path in paths
    ]
    environment = GatewayEnvironment.open(request_for(cluster))
    assert play(environment) == 1.0
    environment.close()
    assert [fault.times for fault in cluster.door.faults] == [0, 0, 0, 0]
    assert cluster.episodes.held() == []


def test_a_cluster_that_only_fails_is_given_up(cluster):
    cluster.door.faults = [Fault(CREATE, times=99, status=503, headers={"retry-after": "0"})]
    with pytest.raises(EnvError, match="answered POST /v1/sandboxes with 503") as caught:
        GatewayEnvironment.open(request_for(cluster, max_attempts=3))
    assert (caught.value.kind, len(cluster.door.seen("POST", CREATE))) == (ErrorKind.INFRA, 3)


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_answer_makes_no_second_sandbox_and_no_second_click(cluster, cut):
    cluster.door.faults = [Fault(CREATE, cut=cut), Fault("/v1/input", cut=cut), Fault("/v1/execute", cut=cut)]
    environment = GatewayEnvironment.open(request_for(cluster, key="trajectory-7"))
    assert len(cluster.episodes.held()) == 1
    first, second = cluster.door.seen("POST", CREATE)
    assert first["idempotency-key"] == second["idempotency-key"] == f"{OWNER}/trajectory-7"
    assert play(environment) == 1.0
    environment.desktop.agent.execute("echo once >> ~/count", shell=True)
    assert environment.desktop.agent.get("~/count") == b"once\n"
    environment.close()


def test_a_second_create_with_the_same_key_gets_the_same_sandbox(cluster):
    first = GatewayEnvironment.open(request_for(cluster, key="trajectory-8"))
    second = GatewayEnvironment.open(request_for(cluster, key="trajectory-8"))
    assert first.sandbox == second.sandbox
    first.close()
    second.close()
    assert cluster.episodes.held() == []


def test_a_slow_answer_is_asked_for_again(cluster):
    environment = GatewayEnvironment.open(request_for(cluster, request_timeout_s=2.0))
    cluster.door.faults = [Fault("/v1/screenshot", method="GET", delay_s=5)]
    assert environment.observe().width == 512
    assert len(cluster.door.seen("GET", "/v1/screenshot")) >= 2
    environment.close()


def test_the_quota_tells_place_and_time(cluster):
    held = [GatewayEnvironment.open(request_for(cluster)) for _ in range(2)]
    with pytest.raises(AtCapacity) as first:
        GatewayEnvironment.open(request_for(cluster, key="trajectory-1"))
    with pytest.raises(AtCapacity) as second:
        GatewayEnvironment.open(request_for(cluster, key="trajectory-2"))
    assert (first.value.position, second.value.position) == (1, 2)
    assert first.value.retry_after_s == 2
    for environment in held:
        environment.close()
    cluster.door.faults = [Fault(CREATE, status=429)]
    with pytest.raises(AtCapacity) as bare:
        GatewayEnvironment.open(request_for(cluster))
    assert (bare.value.retry_after_s, bare.value.position, bare.value.wait_s) == (None, None, None)


def test_a_rate_limit_within_an_episode_is_waited_for_and_parks_nothing(cluster, environment):
    environment.prepare(COLOUR)
    limit = {"status": 429, "headers": {"retry-after": "0"}, "times": 2}
    cluster.door.faults = [Fault("/v1/input", **limit), Fault("/v1/screenshot", method="GET", **limit)]
    environment.act(Action(kind=ActionKind.CLICK, x=5, y=5))
    environment.observe()
    cluster.door.faults = [Fault("/v1/input", **limit | {"times": 99})]
    with pytest.raises(EnvError) as caught:
        environment.act(Action(kind=ActionKind.CLICK, x=5, y=5))
    assert (type(caught.value) is AtCapacity, caught.value.kind) == (False, ErrorKind.INFRA)


def test_a_session_that_is_over_is_infrastructure(cluster, environment):
    environment.prepare(COLOUR)
    cluster.episodes.close_all()
    with pytest.raises(EnvError, match="session is over") as caught:
        environment.act(Action(kind=ActionKind.CLICK, x=5, y=5))
    assert (caught.value.kind, caught.value.permanent) == (ErrorKind.INFRA, False)
    environment.close()


def test_a_wrong_token_is_permanent_and_never_shown(cluster, monkeypatch):
    monkeypatch.setenv(SECRET_VARIABLE, "a-wrong-one")
    with pytest.raises(EnvError, match="check the secret sandbox-token") as caught:
        GatewayEnvironment.open(request_for(cluster))
    assert caught.value.permanent
    assert "a-wrong-one" not in str(caught.value)
    monkeypatch.delenv(SECRET_VARIABLE)
    with pytest.raises(EnvError, match=f"set {SECRET_VARIABLE} or write it to"):
        GatewayEnvironment.open(request_for(cluster))


def test_a_cluster_with_an_unknown_certificate_is_not_talked_to(cluster):
    with pytest.raises(EnvError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        GatewayEnvironment.open(request_for(cluster, ca_file=""))
    assert caught.value.permanent
    assert cluster.door.requests == []


def test_an_action_that_makes_no_sense_is_the_agents_mistake(environment):
    with pytest.raises(EnvError) as caught:
        environment.act(Action(kind=ActionKind.KEY, keys=("no-such-key",)))
    assert caught.value.kind is ErrorKind.TASK


def test_files_of_any_size_go_in_and_out(environment):
    agent = environment.desktop.agent
    data = bytes(range(256)) * 500
    agent.put("~/a folder/data.bin", data)
    assert agent.get("~/a folder/data.bin") == data
    agent.put("/tmp/empty", b"")
    assert agent.get("/tmp/empty") == b""
    assert agent.get("~/nothing") is None
    with pytest.raises(EnvError, match="could not be written"):
        agent.put("/proc/no", b"x")


def test_its_windows_can_be_found_placed_and_closed(environment):
    desktop = environment.desktop
    desktop.agent.put("~/Greeting.txt", b"hello")
    desktop.agent.launch("mousepad ~/Greeting.txt", shell=True)
    window = desktop.wait_for_window("Greeting", timeout_s=60)
    assert "mousepad" in window.window_class.lower()
    desktop.console.windows.move(window.window_id, (40, 50, 400, 300))
    for _ in range(100):
        window = desktop.windows()[0]
        if (window.x, window.y, window.width, window.height) == (40, 50, 400, 300):
            break
    assert (window.x, window.y, window.width, window.height) == (40, 50, 400, 300)
    assert desktop.activate_window("Greeting")
    assert desktop.close_window("Greeting")
    assert not desktop.activate_window("Nobody")


def test_sandboxes_that_serve_no_trajectory_are_deleted(cluster):
    lost, used = (GatewayEnvironment.open(request_for(cluster, key=f"trajectory-{n}")) for n in (1, 2))
    knobs = GatewayConfig.model_validate(cluster.knobs())
    assert delete_unused(knobs, lambda: {"trajectory-2"}) == [lost.sandbox.sandbox_id]
    (left,) = cluster.episodes.held()
    assert left.episode_id == used.sandbox.sandbox_id
    other = GatewayConfig.model_validate(cluster.knobs(owner="somebody-else"))
    assert delete_unused(other, lambda: set()) == []
    unreachable = GatewayConfig.model_validate(cluster.knobs(endpoint="https://127.0.0.1:9", max_attempts=1))
    assert delete_everywhere([unreachable, knobs], lambda: set()) == 1


class TwinVendor:
    """What a vendor's adapter looks like; this one makes nothing."""

    def create(self, request: SandboxRequest) -> Sandbox:
        raise AtCapacity(f"no {request.width}x{request.height} today", position=9)

    def close(self) -> None:
        self.is_closed = True


def make_twin(knobs: GatewayConfig, token: str) -> SandboxVendor:
    assert token == TOKEN
    return TwinVendor()  # type: ignore[return-value]


def test_a_vendors_own_adapter_is_found_by_its_name(cluster, settings):
    name = f"{__name__}:make_twin"
    with pytest.raises(EnvError, match="is not in DESKHAND_GATEWAY_VENDORS here"):
        GatewayEnvironment.open(request_for(cluster, vendor=name))
    settings.GATEWAY_VENDORS = [name, "no_such_module:make"]
    with pytest.raises(AtCapacity, match="no 512x384 today"):
        GatewayEnvironment.open(request_for(cluster, vendor=name))
    with pytest.raises(EnvError, match="install its SDK where env workers run"):
        GatewayEnvironment.open(request_for(cluster, vendor="no_such_module:make"))


def test_a_cluster_that_goes_on_failing_is_left_alone_for_a_while(cluster, redis_client):
    request = request_for(cluster, vendor="not.listed:here")
    for _ in range(NUM_FREE + 1):
        with pytest.raises(EnvError, match="not in DESKHAND_GATEWAY_VENDORS"):
            GatewayEnvironment.open(request)
    with pytest.raises(AtCapacity, match="tried again in . s after: .*GATEWAY_VENDORS") as parked:
        GatewayEnvironment.open(request)
    assert 0 < (parked.value.retry_after_s or 0) <= FIRST_PAUSE_S
    BackOff(redis_client, request.knobs.model_dump_json()).worked()
    with pytest.raises(EnvError, match="not in DESKHAND_GATEWAY_VENDORS"):
        GatewayEnvironment.open(request)


def test_a_retry_after_is_a_number_or_a_date():
    assert retry_after_s("7") == 7
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after_s("soon") is None
    assert retry_after_s(None) is None
