"""Desktops with their rewards for trainers elsewhere: OpenEnv's protocol, gymnasium, and TRL's tools."""

import itertools
import json
from collections.abc import Iterator

import numpy as np
import pytest
from deskhand_client.desktop_env import KINDS, DesktopEnv
from deskhand_client.desktop_session import DesktopSession
from deskhand_client.transport import ApiError
from deskhand_client.trl_desktop import TrlDesktop
from gymnasium.utils.env_checker import check_env
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from testing.workers.env_server_client import posted
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from training.content.task_sets.first_desk import generate
from training.tasks.task_json import to_osworld

pytestmark = pytest.mark.desktop

TASKS = {task.task_id: task for task in generate()}
COLOUR = TASKS["first-desk/colour/0000"]
SOLUTION = COLOUR.oracle["actions"]
FAIL = {"kind": "terminate", "status": "failure"}


@pytest.fixture(scope="module")
def episodes(desk_client):
    return episodes_over(desk_client)


@pytest.fixture(scope="module")
def server(episodes) -> Iterator[str]:
    with serving(application(episodes, wait_s=1.0)) as url:
        yield url


@pytest.fixture
def session(server, episodes) -> Iterator[DesktopSession]:
    yield DesktopSession(server, TOKEN)
    episodes.close_all()


# --- the session, over plain HTTP --------------------------------------------------------------------


def test_the_agents_word_ends_the_episode_and_brings_the_reward(session, episodes):
    seen = session.reset(task_id=COLOUR.task_id)
    assert (seen.instruction, seen.is_done, seen.reward) == (COLOUR.instruction, False, None)
    for action in SOLUTION[:-1]:
        seen = session.step(command=action)
        assert (seen.error, seen.is_done, seen.reward) == ("", False, None)
    seen = session.step(code="DONE")
    assert (seen.is_done, seen.is_truncated, seen.reward, seen.facts["score"]) == (True, False, 1.0, 1.0)
    assert [term["name"] for term in seen.facts["terms"]] == ["task_score.v1"]
    with pytest.raises(ApiError, match="has ended; reset it"):
        session.step(code="DONE")
    assert session.reset(task_id=COLOUR.task_id).is_done is False
    assert len(episodes) == 1
    session.close()
    assert len(episodes) == 0


def test_a_limit_truncates_and_scores_what_is_there(session):
    session.reset(task=to_osworld(COLOUR), max_turns=2)
    session.step(code="WAIT")
    seen = session.step(code="WAIT")
    assert (seen.is_done, seen.is_truncated, seen.reward) == (True, True, 0.0)
    session.reset(task_id=COLOUR.task_id)
    for action in SOLUTION[:-1]:
        session.step(command=action)
    seen = session.end()
    assert (seen.is_truncated, seen.reward) == (True, 1.0)
    assert session.end() == seen


def test_what_cannot_be_read_or_done_is_a_turn_with_its_own_reward_term(session):
    session.reset(task_id=COLOUR.task_id, reward_preset="first-desk.v1", max_turns=4)
    assert "os.remove" in session.step(code="os.remove('x')").error
    assert session.step(command={"kind": "click", "x": 5000, "y": 1}).error
    assert session.step(command={"kind": "key", "keys": ["no such key"]}).error
    seen = session.step(command=FAIL)
    assert seen.is_done
    assert {term["name"] for term in seen.facts["terms"]} > {"task_score.v1"}
    assert seen.reward == pytest.approx(sum(term["contribution"] for term in seen.facts["terms"]))


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"task_id": "nothing"}, "task_id"),
        ({"index": -1}, "index"),
        ({"max_turns": 0}, "max_turns"),
        ({"split": "best"}, "split"),
        ({"reward_preset": "more.v9"}, "reward_preset"),
        ({"task": {"instruction": "no id"}}, "task_config"),
    ],
)
def test_wrong_fields_are_named_and_take_no_desktop(session, episodes, asked, field):
    with pytest.raises(ApiError, match=field) as refused:
        session.reset(**asked)
    assert refused.value.status == 400
    assert len(episodes) == 0


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/openenv/reset", {"reward_preset": ["x"]}),
        ("/openenv/reset", {"split": ["train"]}),
        ("/openenv/reset", {"task": {"id": "x", "instruction": "y", "screen": [[1], {}]}}),
        ("/v1/sandboxes", {"owner": 5}),
        ("/v1/execute", {"command": "true", "timeout_s": "soon"}),
        ("/v1/input", {"action": {"kind": "wait", "seconds": "x"}}),
    ],
)
def test_fields_of_another_type_are_refused(server, episodes, path, fields):
    status, told = posted(server, path, json.dumps(fields).encode())
    assert (status, told["code"]) == (400, "bad_request"), told
    assert len(episodes) == 0


# --- gymnasium ---------------------------------------------------------------------------------------


def test_gymnasiums_own_check_passes(server, episodes):
    env = DesktopEnv(server, TOKEN, max_turns=4, render_mode="rgb_array")
    check_env(env, skip_render_check=True, skip_close_check=True)
    assert env.render().shape == env.observation_space.shape
    env.close()
    assert len(episodes) == 0


def test_the_environment_solves_a_task_by_its_own_actions(server):
    env = DesktopEnv(server, TOKEN)
    _, info = env.reset(options={"task_id": COLOUR.task_id})
    assert info["instruction"] == COLOUR.instruction
    width, height = COLOUR.screen
    nothing = {"target": (0, 0), "notches": (0, 0), "text": "", "point": (0, 0)}
    for action in SOLUTION:
        kind = {"success": "done", "failure": "fail"}.get(action.get("status"), action["kind"])
        point = ((action.get("x", 0) + 0.5) / width, (action.get("y", 0) + 0.5) / height)
        sample = nothing | {"kind": KINDS.index(kind), "point": np.array(point, np.float32)}
        _, reward, terminated, truncated, info = env.step(sample)
    assert (reward, terminated, truncated) == (1.0, True, False)
    env.close()


# --- TRL ---------------------------------------------------------------------------------------------


def test_trls_tools_are_the_models_and_the_reward_is_the_evaluators(session, server):
    desktop = TrlDesktop(server, TOKEN)
    assert desktop.reset(task_id=COLOUR.task_id, prompt="more columns") == COLOUR.instruction
    for action in SOLUTION[:-1]:
        image, told = desktop.click(action["x"], action["y"])
        assert (image["image"].size, told["text"]) == (COLOUR.screen, "Done.")
    assert desktop.get_reward() == 1.0
    blind = TrlDesktop(server, TOKEN, with_images=False)
    blind.reset()
    assert "outside" in blind.click(-1, 9999) or "off" in blind.click(-1, 9999)
    assert blind.finish(False) == "The task has ended."
    with pytest.raises(ValueError, match="ended"):
        blind.look()
    assert blind.get_reward() == 0.0


# --- OpenEnv's WebSocket -----------------------------------------------------------------------------


def asked(socket, kind: str, **data) -> dict:
    socket.send(json.dumps({"type": kind, **({"data": data} if kind != "state" else {})}))
    return json.loads(socket.recv(timeout=120))


def socket_to(server: str, token: str = TOKEN):
    url = f"{server.replace('http', 'ws', 1)}/openenv/ws"
    return connect(url, additional_headers={"Authorization": f"Bearer {token}"}, max_size=None, proxy=None)


def test_a_connection_holds_a_desktop_and_gives_it_back(server, episodes):
    with socket_to(server) as socket:
        assert asked(socket, "step", code="DONE")["data"]["code"] == "SESSION_ERROR"
        assert asked(socket, "reset", index=-1)["data"]["code"] == "VALIDATION_ERROR"
        first = asked(socket, "reset", task_id=COLOUR.task_id)
        assert (first["type"], first["data"]["done"], first["data"]["reward"]) == ("observation", False, None)
        asked(socket, "step", code="WAIT")
        assert asked(socket, "state")["data"]["step_count"] == 1
        for odd in (
            "[" * 100_000,
            b'{"type": "fly"}',
            b"\xff",
            '"x"',
            '{"type": ["step"]}',
            '{"type": NaN}',
            "",
        ):
            socket.send(odd)
            assert json.loads(socket.recv(timeout=60))["data"]["code"] == "UNKNOWN_TYPE"
        last = asked(socket, "step", code="FAIL")["data"]
        assert (last["done"], last["reward"], last["metadata"]["score"]) == (True, 0.0, 0.0)
        assert len(episodes) == 1
    for _ in itertools.takewhile(lambda _: len(episodes), range(200)):
        with socket_to(server) as socket:  # an answer of the server: it has had its turn
            asked(socket, "state")
    assert len(episodes) == 0


def test_a_full_server_tells_a_connection_so(server, episodes):
    with socket_to(server) as one, socket_to(server) as two, socket_to(server) as three:
        for socket in (one, two):
            assert asked(socket, "reset")["type"] == "observation"
        assert asked(three, "reset")["data"]["code"] == "CAPACITY_REACHED"
    episodes.close_all()


def test_without_the_token_no_connection_is_taken(server):
    with pytest.raises(InvalidStatus, match="403"), socket_to(server, "wrong"):
        pass
    url = f"{server.replace('http', 'ws', 1)}/token/{TOKEN}/openenv/ws"
    with connect(url, proxy=None) as socket:
        assert asked(socket, "state")["data"]["code"] == "SESSION_ERROR"
