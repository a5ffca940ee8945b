"""AReaL's remote_server: sessions that serve several tasks."""

import base64
import threading
from io import BytesIO

import pytest
from PIL import Image

from training.actions.write_completion import format_action
from training.content.task_sets.first_desk import generate
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, Task
from training.tasks.task_json import to_osworld

pytestmark = pytest.mark.desktop

COLOUR = next(task for task in generate() if task.task_id == "first-desk/colour/0000")


def code_of(action: dict, task: Task = COLOUR) -> str:
    return format_action(Action.model_validate(action), "pyautogui", CoordinateSpace.SCREEN, task.screen)


def picture_of(encoded: str) -> Image.Image:
    return Image.open(BytesIO(base64.b64decode(encoded)))


def test_an_areal_session_serves_several_tasks(client):
    session = client.good("/envs", {"screen_size": list(COLOUR.screen), "path_to_vm": None})
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


def test_an_action_that_cannot_be_done_is_told_in_info(client):
    session = client.good("/envs", {"screen_size": list(COLOUR.screen)})["session_id"]
    client.good(f"/envs/{session}/reset", {"task_config": to_osworld(COLOUR)})
    answer = client.good(f"/envs/{session}/step", {"action": "import os; os.remove('x')", "pause": 0})
    assert "os.remove('x')" in answer["info"]["action_error"]
    assert answer["obs"]["screenshot_b64"]


def test_a_new_session_waits_for_a_free_desktop(client):
    wanted = {"screen_size": list(COLOUR.screen)}
    held = [client.good("/envs", wanted)["session_id"] for _ in range(2)]
    answers: list[dict] = []
    waiter = threading.Thread(target=lambda: answers.append(client.good("/envs", wanted)))
    waiter.start()
    client.good(f"/envs/{held[0]}/close", {})
    waiter.join(60)
    assert answers[0]["session_id"] not in held


def test_a_screen_of_another_type_is_refused(client):
    status, answer, _ = client.ask("/envs", {"screen_size": [1e9, None]})
    assert (status, answer["code"]) == (400, "bad_request")
