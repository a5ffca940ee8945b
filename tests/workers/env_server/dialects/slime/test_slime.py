"""Slime-OSWorld's protocol: episodes, their order, and errors that are errors."""

import base64
import threading
from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image

from testing.workers.env_server_client import Client
from testing.workers.env_server_thread import TOKEN
from training.actions.write_completion import format_action
from training.content.task_sets.first_desk import generate
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, Task
from training.tasks.task_json import to_osworld

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


class SlimeClient(Client):
    """Begins episodes as Slime-OSWorld's client does."""

    def reset(self, task: Task = COLOUR, key: str = "") -> str:
        return self.good("/reset", reset_body(task), key)["episode_id"]


@pytest.fixture
def client(server, episodes) -> Iterator[SlimeClient]:
    yield SlimeClient(f"{server}/token/{TOKEN}")
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
    assert first["accessibility_tree"].startswith("<desktop-frame ")
    assert first["terminal"] == ""
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


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        ("/reset", {"env_config": ENV_CONFIG}, "task_config"),
        ("/reset", {"task_config": {"id": "x"}}, "instruction"),
        ("/reset", {"task_config": {}, "env_config": {"screen_size": [1, 2]}}, "screen_size"),
        ("/step", {}, "episode_id"),
        ("/step", {"episode_id": "x", "pause": "long"}, "pause"),
        ("/reset", [], "JSON object"),
        ("/reset", {"env_config": [1], "task_config": {}}, "env_config"),
        ("/reset", {"task_config": {"id": "x", "instruction": "y", "config": 5}}, "config"),
    ],
)
def test_a_bad_request_is_told_which_field_is_wrong(client, path, body, names):
    if path == "/step" and "pause" not in names:
        body = body | {"pause": 0}
    status, answer, _ = client.ask(path, body)
    assert (status, answer["code"]) == (400, "bad_request")
    assert names in answer["error"]


def test_an_action_that_cannot_be_done_is_an_error(client):
    status, answer, _ = client.ask(
        "/step", {"episode_id": client.reset(), "action": "import os; os.remove('x')", "pause": 0}
    )
    assert (status, answer["code"]) == (422, "refused")
