"""Routes write and read their own requests and answers, and name the field that is wrong."""

import pytest

from testing.training.route_examples import EXAMPLES
from training.contracts import coordinator, policy_server
from training.contracts.route_types import MalformedMessage
from training.contracts.types import Purpose
from training.contracts.weight_requests import Commit, Load

ROUTES = (*coordinator.ROUTES, *policy_server.ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_request_is_read_as_it_was_written(route):
    asked = EXAMPLES[route]
    wire = route.write_request(asked)
    in_path = route.match(route.method, wire.path)
    assert in_path is not None
    query = {key: str(value) for key, value in wire.query.items()}
    assert route.read_request(in_path, query, wire.body) == asked


@pytest.mark.parametrize("table", [coordinator.ROUTES, policy_server.ROUTES])
def test_a_path_belongs_to_one_route(table):
    for route in table:
        wire = route.write_request(EXAMPLES[route])
        assert [one for one in table if one.match(route.method, wire.path) is not None] == [route]


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        (coordinator.METRICS, b'{"step": 1, "values": {"loss/policy": NaN}}', "values.loss/policy"),
        (coordinator.METRICS, b'{"step": 1, "values": {"a/b": Infinity}}', "values.a/b"),
        (coordinator.METRICS, b'{"step": 1, "values": {}, "attempt": 2}', "attempt: Extra inputs"),
        (coordinator.METRICS, b'{"step": 1,', "body: EOF"),
        (coordinator.METRICS, b"[]", "body: "),
        (coordinator.MEMBERS, b'[{"trajectory_id": 1, "advantage": NaN}]', "0.advantage"),
        (coordinator.STAGE, b'{"name": "warm-up", "status": "started"}', "name: "),
        (coordinator.SAMPLE_GROUP, b'{"task_id": "a", "size": 0, "purpose": "train"}', "size: "),
        (coordinator.WEIGHTS, b'{"stage": "begin", "channel": "nccl"}', "begin.policy_version"),
        (policy_server.SLEEP, b'{"hours": 8}', "hours: "),
    ],
)
def test_a_wrong_field_is_named(route, body, field):
    with pytest.raises(MalformedMessage, match=f"^{field}|; {field}"):
        route.read_request({}, {}, body)


def test_optional_fields_of_a_query_may_be_left_out():
    assert coordinator.TASKS.write_request(coordinator.TaskQuery()).query == {}
    assert coordinator.FINISHED_GROUPS.read_request({}, {}, b"") == coordinator.FinishedQuery()


def test_a_weight_sync_chooses_its_step_by_name():
    read = coordinator.WEIGHTS.read_request
    assert read({}, {}, b'{"path": "/w", "policy_version": 2}') == Load(path="/w", policy_version=2)
    body = b'{"channel": "ipc", "stage": "commit", "policy_version": 3}'
    assert read({}, {}, body) == Commit(channel="ipc", policy_version=3)


def test_an_answer_that_cannot_be_read_names_its_route():
    with pytest.raises(MalformedMessage, match="POST /groups: answer: group_id"):
        coordinator.SAMPLE_GROUP.read_answer(b"{}")


def test_the_wire_is_that_of_the_documented_names():
    wire = coordinator.SAMPLE_GROUP.write_request(
        coordinator.SampleGroup(task_id="t", size=2, purpose=Purpose.TRAIN, policy_version=1)
    )
    assert wire.body == (
        b'{"task_id":"t","size":2,"purpose":"train","step":0,"source":"policy","temperature":1.0,'
        b'"policy_version":1}'
    )
