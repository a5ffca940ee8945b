"""The coordinator over HTTP: every route has a handler, and a bad request is answered, never a crash."""

import httpx
import pytest

from testing.factories import make_attempt, make_experiment
from testing.training.route_examples import EXAMPLES
from training.contracts import coordinator
from training.contracts.route_types import loading_message
from workers.gpu.coordinator.handler_contract import AttemptContext
from workers.gpu.coordinator.server import HANDLERS, CoordinatorServer
from workers.gpu.policy_server_process import PolicyServerLoading

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def experiment():
    return make_experiment()


@pytest.fixture
def served(experiment):
    context = AttemptContext(make_attempt(experiment).pk, policy=None)
    with CoordinatorServer(context) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as client:
            yield client


def test_every_route_has_one_handler():
    assert sorted(map(str, coordinator.ROUTES)) == sorted(str(handler.route) for handler in HANDLERS)


def test_a_wrong_token_is_refused_on_every_route(served):
    for route in coordinator.ROUTES:
        path = route.write_request(EXAMPLES[route]).path
        answer = served.request(route.method, path, headers={"Authorization": "Bearer wr\u00f6ng".encode()})
        assert answer.status_code == 401, route


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/metrics", b'{"step": 1, "values": {"loss/policy": NaN}}', "values.loss/policy"),
        ("/metrics", b'{"step": 1, "values": {"loss/policy": 1}, "loss": 2}', "loss: Extra inputs"),
        ("/metrics", b"not JSON", "body: "),
        ("/stage", b'{"name": "cooking", "status": "started"}', "name: "),
        ("/members", b'[{"trajectory_id": 1, "advantage": Infinity}]', "0.advantage"),
        ("/groups", b'{"task_id": "a", "size": 1, "purpose": "fun"}', "purpose: "),
        ("/groups/seven/cancel", b"{}", "group_id: "),
        ("/engine", b'{"command": "dance"}', "command: "),
        ("/checkpoints", b'{"step": 1, "path": "/c", "policy_version": 1, "success": NaN}', "success: "),
    ],
)
def test_a_field_that_cannot_be_read_is_named(served, experiment, path, body, field):
    answer = served.post(path, content=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "bad_request"
    assert field in error["message"]
    assert path.split("/")[1] in error["message"]
    assert not experiment.metrics.exists()


def test_good_metrics_are_stored(served, experiment):
    assert served.post("/metrics", json={"step": 1, "values": {"loss/policy": 0.5}}).json() == {}
    assert experiment.metrics.get().value == 0.5


def test_what_is_not_there_is_404(served):
    assert served.post("/groups/4711/cancel", json={}).status_code == 404
    assert served.get("/frames/" + "ab" * 32).status_code == 404
    assert served.get("/replay", params={"task_id": "no-such"}).status_code == 404


def test_a_malformed_query_is_named(served):
    answer = served.get("/tasks", params={"split": "tests"})
    assert (answer.status_code, "split: " in answer.text) == (400, True)
    assert served.get("/groups/finished", params={"after": "x"}).status_code == 400


class LoadingPolicy:
    """A policy server that is not ready for a weight sync, nor to sleep."""

    def sync_weights(self, request):
        raise PolicyServerLoading("loading weights (200 s)")

    def command_engine(self, command):
        raise PolicyServerLoading("loading weights (200 s)")


@pytest.mark.parametrize("route", [coordinator.WEIGHTS, coordinator.ENGINE], ids=str)
def test_the_trainer_hears_that_the_policy_server_is_loading(experiment, route):
    context = AttemptContext(make_attempt(experiment).pk, policy=LoadingPolicy())
    wire = route.write_request(EXAMPLES[route])
    with CoordinatorServer(context) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        answer = httpx.post(server.url + wire.path, content=wire.body, headers=headers, trust_env=False)
    assert loading_message(answer.status_code, answer.content) == "loading weights (200 s)"


def test_a_checkpoint_that_does_not_fit_waits_and_the_page_says_so(served, experiment, tmp_path):
    asked = {"folder": str(tmp_path / "not-yet"), "num_bytes": 10**18}
    shortage = served.post("/checkpoints/room", json=asked).json()["shortage"]
    assert "checkpoints in" in shortage
    assert "missing" in shortage
    experiment.refresh_from_db()
    assert experiment.message == f"Waits for disk space to save a checkpoint: {shortage}."
    assert served.post("/checkpoints/room", json=asked | {"num_bytes": 1}).json() == {"shortage": ""}
    experiment.refresh_from_db()
    assert experiment.message == "Running."
