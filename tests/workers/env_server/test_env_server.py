"""Our env server, asked as the clients of both trainers ask theirs; real desktops behind it."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image

from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from tests.workers.conftest import ROOT
from training.actions.write.completion_text import format_action
from training.content.task_sets.first_desk import generate
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, Task
from training.tasks.task_json import to_osworld
from webapp.lib.supervisor.ports import free_port
from workers.env_server.__main__ import main as env_server_main

pytestmark = pytest.mark.desktop

TASKS = {task.task_id: task for task in generate()}
COLOUR = TASKS["first-desk/colour/0000"]
BROKEN_EVALUATOR = {
    "func": "exact_match",
    "result": {"type": "vm_file", "path": "x"},
    "expected": {"type": "rule", "rules": {}},
}
ENV_CONFIG = {
    "provider_name": "docker",
    "os_type": "Ubuntu",
    "action_space": "pyautogui",
    "screen_size": [1920, 1080],
    "headless": True,
    "require_a11y_tree": True,
}
"""What Slime-OSWorld's client sends."""


class Client:
    """JSON over HTTP with the standard library, as both trainers' clients do it."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", **headers}

    def ask(self, path: str, body: object = None, key: str = "") -> tuple[int, dict, dict]:
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read()), dict(error.headers)

    def good(self, path: str, body: object = None, key: str = "") -> dict:
        status, answer, _ = self.ask(path, body, key)
        assert status == 200, answer
        return answer

    def reset(self, task: Task = COLOUR, key: str = "") -> str:
        return self.good("/reset", reset_body(task), key)["episode_id"]


@pytest.fixture(scope="module")
def episodes(desk_client):
    return episodes_over(desk_client)


@pytest.fixture(scope="module")
def server(episodes) -> Iterator[str]:
    with serving(application(episodes)) as url:
        yield url


@pytest.fixture
def client(server, episodes) -> Iterator[Client]:
    """Its token stands in the URL: neither trainer's client can send a header."""
    yield Client(f"{server}/token/{TOKEN}")
    episodes.close_all()


def reset_body(task: Task) -> dict:
    return {"task_config": to_osworld(task), "env_config": ENV_CONFIG}


def code_of(action: dict, task: Task = COLOUR) -> str:
    return format_action(Action.model_validate(action), "pyautogui", CoordinateSpace.SCREEN, task.screen)


def picture_of(encoded: str) -> Image.Image:
    return Image.open(BytesIO(base64.b64decode(encoded)))


def test_a_slime_episode_from_reset_to_reward(client):
    first = client.good("/reset", reset_body(COLOUR))
    assert picture_of(first["screenshot_base64"]).size == COLOUR.screen
    assert first["instruction"] == COLOUR.instruction
    assert (first["accessibility_tree"], first["terminal"]) == ("", "")
    episode = {"episode_id": first["episode_id"]}
    for number, action in enumerate(COLOUR.oracle["actions"], start=1):
        seen = client.good("/step", episode | {"action": code_of(action), "pause": 2})
        assert (seen["step"], seen["reward"], seen["info"]) == (number, 0.0, {})
    assert seen["done"]
    assert client.good("/health")["episodes"] == 1
    assert client.good("/evaluate", episode) == {"reward": 1.0}
    assert client.good("/close", episode) == {"status": "closed", **episode}
    assert client.good("/health")["episodes"] == 0


def test_doing_nothing_is_worth_nothing(client):
    episode = {"episode_id": client.reset()}
    assert client.good("/evaluate", episode) == {"reward": 0.0}


def test_render_takes_a_fresh_screenshot(client, episodes):
    first = client.good("/reset", reset_body(COLOUR))
    with episodes.use(first["episode_id"]) as episode:
        episode.environment.desktop.agent.execute("xsetroot -solid '#123456'; pkill deskhand", shell=True)
        episode.environment.desktop.agent.launch(["xmessage", "-geometry", "200x100+50+50", "hello"])
    later = client.good("/render", {"episode_id": first["episode_id"]})
    for _ in range(200):
        if later["screenshot_base64"] != first["screenshot_base64"]:
            break
        later = client.good("/render", {"episode_id": first["episode_id"]})
    assert later["screenshot_base64"] != first["screenshot_base64"]


def test_an_areal_session_serves_several_tasks(client):
    session = client.good("/envs", ENV_CONFIG | {"screen_size": list(COLOUR.screen), "path_to_vm": None})
    path = f"/envs/{session['session_id']}"
    for reward in (1.0, 0.0):
        seen = client.good(f"{path}/reset", {"task_config": to_osworld(COLOUR)})["obs"]
        assert picture_of(seen["screenshot_b64"]).size == COLOUR.screen
        if reward:
            code = "\n".join(code_of(action) for action in COLOUR.oracle["actions"][:-1])
            answer = client.good(f"{path}/step", {"action": f"import time\n{code}", "pause": 0.0})
            assert (answer["done"], answer["reward"], answer["info"]) == (False, 0.0, {})
            assert client.good(f"{path}/step", {"action": "DONE", "pause": 0.0})["done"]
        assert client.good(f"{path}/evaluate", {}) == {"reward": reward}
    assert "screenshot_b64" in client.good(f"{path}/obs")["obs"]
    assert client.good(f"{path}/close", {}) == {"ok": True}
    assert client.good(f"{path}/close", {}) == {"ok": True}
    assert client.ask(f"{path}/evaluate", {})[0] == 404


def test_an_action_that_cannot_be_done_is_told_in_each_protocols_way(client):
    refused = {"action": "import os; os.remove('x')", "pause": 0}
    status, answer, _ = client.ask("/step", {"episode_id": client.reset()} | refused)
    assert (status, answer["code"]) == (422, "refused")
    session = client.good("/envs", {"screen_size": list(COLOUR.screen)})["session_id"]
    client.good(f"/envs/{session}/reset", {"task_config": to_osworld(COLOUR)})
    answer = client.good(f"/envs/{session}/step", refused)
    assert "os.remove('x')" in answer["info"]["action_error"]
    assert answer["obs"]["screenshot_b64"]


def test_a_full_server_says_when_to_come_back_and_keeps_the_order(client):
    held = [client.reset(), client.reset()]
    places = []
    for key in ("first", "second", "first"):
        status, answer, headers = client.ask("/reset", reset_body(COLOUR), key)
        assert (status, answer["code"]) == (429, "full")
        assert int(headers["retry-after"]) >= 1
        places.append(answer["queue_position"])
    assert places == [1, 2, 1]
    client.good("/close", {"episode_id": held[0]})
    status, answer, _ = client.ask("/reset", reset_body(COLOUR), "second")
    assert (status, answer["queue_position"]) == (429, 2)
    assert answer["wait_s"] > 0
    client.reset(key="first")
    client.good("/close", {"episode_id": held[1]})
    client.reset(key="second")


def test_a_new_areal_session_waits_for_a_free_desktop(client):
    held = [client.reset(), client.reset()]
    answers: list[dict] = []
    waiter = threading.Thread(
        target=lambda: answers.append(client.good("/envs", {"screen_size": [512, 384]}))
    )
    waiter.start()
    client.good("/close", {"episode_id": held[0]})
    waiter.join(60)
    assert answers[0]["session_id"]


def test_a_slow_episode_holds_up_nobody_else(client, episodes):
    slow, quick = client.reset(), client.reset()
    body = {"action": code_of(COLOUR.oracle["actions"][0]), "pause": 0}
    answers: list[dict] = []
    with episodes.use(slow):  # as a call at work does
        waiting = threading.Thread(
            target=lambda: answers.append(client.good("/step", body | {"episode_id": slow}))
        )
        waiting.start()
        client.good("/step", body | {"episode_id": quick})
        client.good("/health")
        client.good("/close", {"episode_id": quick})
        assert not answers
    waiting.join(60)
    assert answers[0]["step"] == 1


def test_a_silent_episode_is_closed_and_its_desktop_given_back(desk_client):
    episodes = episodes_over(desk_client, ttl_s=2)
    with serving(application(episodes, token="")) as url:
        client = Client(url)
        episode = client.reset()
        (held,) = episodes.held()
        desktop = held.environment.desktop_id
        for _ in range(1200):
            if client.ask("/evaluate", {"episode_id": "none"}) and not len(episodes):
                break
            threading.Event().wait(0.05)
        assert client.ask("/render", {"episode_id": episode})[0] == 404
        assert client.good("/close", {"episode_id": episode})["status"] == "closed"
    leased = [row.info.desktop_id for row in desk_client.list() if row.lease_id]
    assert desktop not in leased


def test_an_evaluator_that_breaks_is_an_error_without_a_reward(client):
    broken = COLOUR.model_copy(update={"evaluator": BROKEN_EVALUATOR})
    status, answer, _ = client.ask("/evaluate", {"episode_id": client.reset(broken)})
    assert (status, answer["code"]) == (422, "evaluator")
    assert "reward" not in answer


def test_a_setup_that_cannot_be_done_gives_the_desktop_back(client, episodes):
    task = to_osworld(COLOUR) | {"config": [{"type": "login", "parameters": {}}]}
    status, answer, _ = client.ask("/reset", {"task_config": task, "env_config": ENV_CONFIG})
    assert (status, answer["code"]) == (422, "setup")
    assert "login" in answer["error"]
    assert len(episodes) == 0


def test_a_repeated_request_with_its_key_is_done_once(client):
    episode = client.reset(key="reset-1")
    assert client.reset(key="reset-1") == episode
    body = {"episode_id": episode, "action": code_of(COLOUR.oracle["actions"][0])}
    once = client.good("/step", body, "step-1")
    assert client.good("/step", body, "step-1") == once
    assert client.good("/step", body, "step-2")["step"] == once["step"] + 1


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"x-secret-token": "wrong"}])
def test_without_the_token_nothing_is_answered(server, headers):
    status, answer, _ = Client(server, **headers).ask("/health")
    assert (status, answer["code"]) == (401, "unauthorised")
    assert Client(f"{server}/token/wrong").ask("/health")[0] == 401
    assert Client(server, Authorization=f"Bearer {TOKEN}").ask("/health")[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        ("/reset", {"env_config": ENV_CONFIG}, "task_config"),
        ("/reset", {"task_config": {"id": "x"}}, "instruction"),
        ("/reset", {"task_config": {}, "env_config": {"screen_size": [1, 2]}}, "screen_size"),
        ("/step", {}, "episode_id"),
        ("/step", {"episode_id": "x", "pause": "long"}, "pause"),
        ("/reset", [], "JSON object"),
    ],
)
def test_a_bad_request_is_told_which_field_is_wrong(client, path, body, names):
    if path == "/step" and "pause" not in names:
        body = body | {"pause": 0}
    status, answer, _ = client.ask(path, body)
    assert (status, answer["code"]) == (400, "bad_request")
    assert names in answer["error"]


def test_the_command_serves_with_a_token_of_its_own_and_gives_everything_back(desk_client, short_dir):
    port = free_port()
    command = [sys.executable, "-m", "workers.env_server", "--socket", desk_client.socket_path]
    command += ["--port", str(port), "--secrets-dir", str(short_dir / "secrets"), "--screen", "512x384"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "DJANGO_SETTINGS_MODULE": ""})
    try:
        client = Client(f"http://127.0.0.1:{port}")
        for _ in range(1200):
            assert process.poll() is None
            try:
                assert client.ask("/health")[0] == 401
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        token = (short_dir / "secrets" / "env-server").read_text()
        client = Client(f"http://127.0.0.1:{port}/token/{token}")
        held = {row.lease_id for row in desk_client.list()}
        client.reset()
        assert {row.lease_id for row in desk_client.list()} - held
    finally:
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert not {row.lease_id for row in desk_client.list()} - held - {""}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0", "--no-token"], "127.0.0.1 only"),
        (["--no-token"], "the desk host does not answer"),
    ],
)
def test_the_command_says_why_it_cannot_start(short_dir, options, why, capsys):
    arguments = ["--socket", str(short_dir / "none"), "--secrets-dir", str(short_dir), *options]
    assert env_server_main(arguments) == 1
    assert why in capsys.readouterr().err
