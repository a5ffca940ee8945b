"""The provider `remote` against a real env server, good and bad, with real desktops behind it."""

import threading
from collections.abc import Iterator

import pytest
from anyio import from_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from testing.workers.asgi_faults import Fault, Misbehaving
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from training.actions.write.pyautogui_program import pyautogui_code
from training.content.task_sets.first_desk import generate
from training.contracts.config import RemoteConfig
from training.contracts.types import Action, ActionKind, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.registry import AtCapacity, EnvironmentRequest
from workers.environments.remote.environment import RemoteEnvironment
from workers.tasks.errors import EvaluatorError, SetupError

pytestmark = pytest.mark.desktop

TASKS = {task.task_id: task for task in generate()}
COLOUR = TASKS["first-desk/colour/0000"]
DONE = Action(kind=ActionKind.TERMINATE, status="success")


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("DESKHAND_SECRET_ENV_SERVER", TOKEN)


@pytest.fixture(scope="module")
def episodes(desk_client):
    return episodes_over(desk_client)


@pytest.fixture(scope="module")
def served(episodes) -> Iterator[tuple[str, Misbehaving]]:
    app = Misbehaving(application(episodes))
    with serving(app) as url:
        yield url, app


@pytest.fixture
def server(served, episodes, redis_client) -> Iterator[Misbehaving]:
    _, app = served
    app.faults.clear()
    app.requests.clear()
    yield app
    episodes.close_all()


@pytest.fixture
def url(served) -> str:
    return served[0]


def request_for(*urls: str, key: str = "", **knobs: object) -> EnvironmentRequest:
    values = {"urls": urls, "token_secret": "env-server", "slots_per_url": 2, **knobs}
    return EnvironmentRequest("remote", COLOUR.screen, "tests", RemoteConfig.model_validate(values), key)


def play(environment: RemoteEnvironment, task: Task = COLOUR) -> float:
    """The score of the task's oracle."""
    environment.prepare(task)
    environment.observe()
    for action in task.oracle["actions"][:-1]:
        environment.act(Action.model_validate(action))
        environment.observe()
    return environment.evaluate(task, DONE)


def test_an_oracle_solves_tasks_through_it(server, url, episodes):
    for task in (COLOUR, TASKS["first-desk/note/0000"]):
        environment = RemoteEnvironment.open(request_for(url))
        assert play(environment, task) == 1.0
        assert environment.desktop_id == f"{url.removeprefix('http://')}#1"
        environment.reset()
        assert environment.is_lost
        assert len(episodes) == 0
    assert len(server.seen("POST", "/evaluate")) == 2
    assert {each["authorization"] for each in server.seen("POST", "/step")} == {f"Bearer {TOKEN}"}


def test_no_more_trajectories_use_a_url_than_it_has_slots(server, url):
    first = RemoteEnvironment.open(request_for(url, slots_per_url=1))
    with pytest.raises(AtCapacity, match="all 1 slots"):
        RemoteEnvironment.open(request_for(url, slots_per_url=1))
    first.close()
    RemoteEnvironment.open(request_for(url, slots_per_url=1)).close()


def test_a_full_server_tells_the_place_in_its_queue(server, url):
    held = [RemoteEnvironment.open(request_for(url, slots_per_url=4)) for _ in range(4)]
    held[0].prepare(COLOUR)
    held[1].prepare(COLOUR)
    with pytest.raises(AtCapacity) as first:
        held[2].prepare(COLOUR)
    with pytest.raises(AtCapacity) as second:
        held[3].prepare(COLOUR)
    assert (first.value.position, second.value.position) == (1, 2)
    assert first.value.retry_after_s > 0
    for environment in held:
        environment.close()


def test_a_server_that_is_down_is_passed_over(server, url):
    dead = "http://127.0.0.1:9"
    environment = RemoteEnvironment.open(request_for(dead, url))
    assert play(environment) == 1.0
    environment.close()
    with pytest.raises(EnvError, match="no env server can be used: http://127.0.0.1:9 cannot be reached"):
        RemoteEnvironment.open(request_for(dead))


def test_a_wrong_token_is_permanent_and_names_the_secret(server, url, monkeypatch):
    monkeypatch.setenv("DESKHAND_SECRET_ENV_SERVER", "wrong")
    with pytest.raises(EnvError, match="check the secret env-server") as caught:
        RemoteEnvironment.open(request_for(url))
    assert caught.value.permanent
    with pytest.raises(EnvError, match="DESKHAND_SECRET_NOBODY"):
        RemoteEnvironment.open(request_for(url, token_secret="nobody"))


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_broken_connection_is_mended_without_doing_anything_twice(server, url, episodes, cut):
    environment = RemoteEnvironment.open(request_for(url, key="trajectory-1"))
    server.faults = [Fault("/reset", cut=cut), Fault("/step", cut=cut), Fault("/evaluate", cut=cut)]
    assert play(environment) == 1.0
    (episode,) = episodes.held()
    assert episode.num_steps == len(COLOUR.oracle["actions"])
    keys = [each["idempotency-key"] for each in server.seen("POST", "/step")]
    assert len(keys) == len(set(keys)) + 1
    environment.close()


def test_an_episode_that_the_server_lost_is_infrastructure(server, url, episodes):
    environment = RemoteEnvironment.open(request_for(url))
    environment.prepare(COLOUR)
    episodes.close_all()
    with pytest.raises(EnvError, match="restarted or has closed the episode") as caught:
        environment.act(Action(kind=ActionKind.CLICK, x=1, y=1))
    assert caught.value.kind is ErrorKind.INFRA
    environment.close()


def test_an_action_that_the_server_refuses_is_the_agents_mistake(server, url):
    environment = RemoteEnvironment.open(request_for(url))
    environment.prepare(COLOUR)
    with pytest.raises(EnvError, match="off the 512x384 screen") as caught:
        environment.act(Action(kind=ActionKind.CLICK, x=600, y=1))
    assert caught.value.kind is ErrorKind.TASK
    assert environment.observe().width == 512
    environment.close()


def test_errors_of_setup_and_evaluator_keep_their_kind(server, url, episodes):
    environment = RemoteEnvironment.open(request_for(url))
    with pytest.raises(SetupError, match="login"):
        environment.prepare(COLOUR.model_copy(update={"config": ({"type": "login", "parameters": {}},)}))
    assert len(episodes) == 0
    environment.prepare(COLOUR)
    for answer in ({"reward": 0.0, "error": "no such file"}, {"reward": None}, {"reward": 7}):
        server.faults = [Fault("/evaluate", status=200, body=answer)]
        with pytest.raises(EvaluatorError):
            environment.evaluate(COLOUR, None)
    environment.close()


def test_drags_and_lines_of_text_arrive_as_they_are(server, url, episodes):
    environment = RemoteEnvironment.open(request_for(url))
    environment.prepare(COLOUR)
    environment.act(Action(kind=ActionKind.DRAG, x=10, y=10, to_x=60, to_y=40))
    environment.act(Action(kind=ActionKind.TYPE, text="one\ntwo 'three' \\ \"four\""))
    environment.act(Action(kind=ActionKind.KEY, keys=("ctrl", "s")))
    environment.act(Action(kind=ActionKind.SCROLL, x=5, y=6, scroll_y=3))
    assert episodes.held()[0].num_steps == 4
    environment.close()
    text = pyautogui_code(Action(kind=ActionKind.TYPE, text="one\ntwo"))
    assert text == "pyautogui.write('one\\ntwo')"


class OldServer:
    """Answers as Slime-OSWorld's own server does: one thing at a time, no 429, no keys, no token."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: list[str] = []
        self.evaluation: dict[str, object] = {"reward": 1.0}
        self.picture = ""
        self.actions: list[str] = []

    def app(self) -> Starlette:
        def post(request: Request) -> JSONResponse:
            with self.lock:
                path = request.url.path
                self.calls.append(path)
                if path == "/step":
                    self.actions.append(from_thread.run(request.json)["action"])
                if path == "/evaluate":
                    return JSONResponse(self.evaluation)
                if path == "/close":
                    return JSONResponse({"status": "closed", "episode_id": "ab12cd34"})
                seen = {"screenshot_base64": self.picture, "accessibility_tree": None, "terminal": None}
                return JSONResponse(
                    seen | {"episode_id": "ab12cd34", "reward": 0.0, "done": False, "step": 1}
                )

        def health(_request: Request) -> JSONResponse:
            return JSONResponse({"status": "ok", "episodes": 0})

        return Starlette(
            routes=[Route("/health", health), Route("/{name}", post, methods=["POST"])],
        )


@pytest.fixture
def old_server(redis_client) -> Iterator[tuple[str, OldServer, Misbehaving]]:
    import base64

    from PIL import Image

    from workers.desktops import frame_images

    server = OldServer()
    server.picture = base64.b64encode(frame_images.png_of(Image.new("RGB", COLOUR.screen, "navy"))).decode()
    app = Misbehaving(server.app())
    with serving(app) as url:
        yield url, server, app


def test_a_server_that_keeps_no_keys_is_never_asked_twice_for_what_may_be_done(old_server):
    url, server, app = old_server
    environment = RemoteEnvironment.open(request_for(url, token_secret=""))
    environment.prepare(COLOUR)
    app.faults = [Fault("/step", cut="after", times=9)]
    with pytest.raises(EnvError, match="did not answer POST /step"):
        environment.act(Action(kind=ActionKind.CLICK, x=1, y=1))
    assert server.calls.count("/step") == 1
    environment.close()
    assert server.calls[-1] == "/close"


def test_a_server_over_pyautogui_itself_gets_other_scripts_by_the_clipboard(old_server):
    url, server, _ = old_server
    environment = RemoteEnvironment.open(request_for(url, token_secret=""))
    environment.prepare(COLOUR)
    texts = ("plain", "é 日本 😀", "tab\tž")
    for text in texts:
        environment.act(Action(kind=ActionKind.TYPE, text=text))
    assert server.actions[0] == "pyautogui.write('plain')"
    for text, code in zip(texts[1:], server.actions[1:], strict=True):
        pasted = text.split("\t")[-1]
        assert f"pyperclip.copy({pasted!r})" in code
        assert f"write({pasted!r})" not in code
    refused = (
        Action(kind=ActionKind.KEY, keys=("ctrl", "я")),
        Action(kind=ActionKind.TYPE, text="a\x1b[A"),
        Action(kind=ActionKind.TYPE, text="\ud83d"),
    )
    for action, name in zip(refused, ("я", "U\\+001B", "U\\+D83D"), strict=True):
        with pytest.raises(EnvError, match=name) as mistake:
            environment.act(action)
        assert mistake.value.kind is ErrorKind.TASK
    assert len(server.actions) == len(texts)
    environment.close()


def test_done_and_fail_reach_the_server_before_it_evaluates(old_server):
    url, server, _ = old_server
    environment = RemoteEnvironment.open(request_for(url, token_secret=""))
    environment.prepare(COLOUR)
    assert environment.evaluate(COLOUR, DONE) == 1.0
    assert server.calls == ["/reset", "/step", "/evaluate"]
    server.evaluation = {"reward": 0.0, "error": "evaluator crashed"}
    with pytest.raises(EvaluatorError, match="evaluator crashed"):
        environment.evaluate(COLOUR, DONE)
    environment.close()
