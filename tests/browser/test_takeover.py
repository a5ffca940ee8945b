"""Real desktops in the browser: watch one, take it over, record a demonstration.

A real desk host owns the desktops, a thread of this process is the env worker, Chromium runs noVNC.
"""

import base64
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from io import BytesIO

import pytest
from django.db import close_old_connections, connections
from django.utils import timezone
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Page, expect

from tests.browser.people import People, SignIn
from tests.factories import make_user
from tests.workers.conftest import desk_client  # noqa: F401  (a fixture of the env workers' tests)
from training.tasks import first_desk
from training.types import Action, ActionKind, Observation, Purpose, Source, Task, Turn
from webapp.accounts.models import Role
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.replay.models import ReplayEntry
from webapp.screens.models import Control
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import GroupRequest, create_group
from workers import reporting, slots
from workers.actors import Decision
from workers.deskhost.client import DeskHostClient
from workers.env_worker import run
from workers.episode import Episode, Stopped
from workers.providers.x11_display import X11Display
from workers.takeover.seat import watched

pytestmark = [pytest.mark.desktop, pytest.mark.django_db(transaction=True)]
LIMIT_S = 90
SOON = timedelta(seconds=4)


def note_task(text: str) -> Task:
    """Type `text` into an open editor and save."""
    return next(
        task.model_copy(update={"max_turns": 500})
        for task in first_desk.generate()
        if task.family == "note" and text in task.instruction
    )


class PatientAgent:
    """An agent that waits at every turn, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        self.told.append(observation.text)
        return Decision(action=Action(kind=ActionKind.WAIT, seconds=0.2))

    def close(self) -> None:
        pass


@dataclass
class EnvWorker:
    """Runs trajectories in threads of this process, as the Celery job does."""

    client: DeskHostClient
    threads: list[threading.Thread] = field(default_factory=list)
    agent: PatientAgent = field(default_factory=PatientAgent)

    def start(self, trajectory: Trajectory) -> None:
        work = run if trajectory.source == Source.HUMAN else self._run_agent
        thread = threading.Thread(target=self._work, args=(work, trajectory.pk), daemon=True)
        thread.start()
        self.threads.append(thread)

    def _work(self, work: Callable[[int], None], pk: int) -> None:
        try:
            with contextlib.suppress(Stopped):
                work(pk)
        finally:
            slots.drop_environment()
            connections.close_all()

    def _run_agent(self, pk: int) -> None:
        close_old_connections()
        assignment = reporting.claim(pk)
        assert assignment is not None
        environment = slots.clean_environment(assignment.config.desktops, assignment.task.screen, f"t-{pk}")
        with watched(pk, environment):
            Episode(assignment, environment, self.agent).run()

    def screenshot(self) -> Image.Image:
        """What the only leased desktop shows, read from its display server."""
        (leased,) = [row for row in self.client.list() if row.lease_id]
        display = X11Display(leased.info.endpoints.display)
        try:
            width, height = display.size
            return Image.frombytes("RGB", (width, height), display.pixels(), "raw", "BGRX")
        finally:
            display.close()


@pytest.fixture
def env_worker(desk_client: DeskHostClient, settings, people: People) -> Iterator[EnvWorker]:  # noqa: F811
    settings.DESKHOST_SOCKET = desk_client.socket_path
    worker = EnvWorker(desk_client)
    yield worker
    Trajectory.objects.exclude(status__in=["terminated", "truncated", "errored"]).update(status="cancelled")
    for thread in worker.threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


@pytest.fixture
def task(transactional_db: None) -> TaskRecord:
    spec = note_task("blue hen")
    return TaskRecord.objects.create(
        task_set=TaskSet.objects.create(name="first-desk"),
        task_id=spec.task_id,
        instruction=spec.instruction,
        family=spec.family,
        split=spec.split,
        spec=spec.model_dump(mode="json"),
    )


@pytest.fixture
def running(env_worker: EnvWorker, people: People, task: TaskRecord) -> Trajectory:
    """A trajectory of an agent that waits, on its desktop."""
    request = GroupRequest(task=task, size=1, purpose=Purpose.TRAIN, source=Source.SCRIPTED)
    trajectory = create_group(request=request, team_id=people.team.pk).trajectories.get()
    env_worker.start(trajectory)
    wait_for(lambda: Trajectory.objects.get(pk=trajectory.pk).num_turns > 0)
    return trajectory


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def open_desktop(page: Page, trajectory: Trajectory, state: str = "live") -> None:
    page.goto(f"/trajectories/{trajectory.pk}/desktop/", timeout=LIMIT_S * 1000)
    expect(page.locator(f'#desktop[data-screen="{state}"]')).to_be_visible(timeout=LIMIT_S * 1000)


def canvas(page: Page) -> Image.Image:
    """The pixels that noVNC has drawn."""
    url = page.evaluate("document.querySelector('[data-screen] canvas').toDataURL('image/png')")
    return Image.open(BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")


def difference(one: Image.Image, other: Image.Image) -> float:
    """Mean over all pixels and channels, 0 to 255; 255 for images of different sizes."""
    if one.size != other.size:
        return 255.0
    stat = ImageStat.Stat(ImageChops.difference(one, other))
    return sum(stat.mean) / len(stat.mean)


def typed(page: Page, text: str) -> None:
    """Into the desktop; its canvas has the focus while one controls."""
    page.locator("[data-screen] canvas").focus()
    page.keyboard.type(text, delay=20)


def turns_of(trajectory: Trajectory) -> list[tuple[str, dict]]:
    done = trajectory.turns.filter(completed_at__isnull=False).order_by("index")
    return [(turn.source, turn.action) for turn in done]


def text_of(turns: list[tuple[str, dict]]) -> str:
    return "".join(
        action["text"] for source, action in turns if action["kind"] == "type" and source == "human"
    )


def test_a_watcher_sees_the_desktops_own_pixels_change_and_cannot_touch_them(
    sign_in: SignIn, people: People, env_worker: EnvWorker, running: Trajectory
):
    page = sign_in(people.viewer)
    open_desktop(page, running)
    expect(page.locator("[data-screen-pill]")).to_contain_text("Live")
    expect(page.locator('[data-do="take"]')).to_have_count(0)
    wait_for(lambda: difference(canvas(page), env_worker.screenshot()) < 3)
    before = env_worker.screenshot()

    page.evaluate(  # what a changed page could send: keys and clicks although it only watches
        """() => { for (const key of ["keydown", "keyup"]) for (const char of "abc")
            document.querySelector('[data-screen] canvas').dispatchEvent(
                new KeyboardEvent(key, { key: char, code: "Key" + char.toUpperCase(), bubbles: true })); }"""
    )
    box = page.locator("[data-screen] canvas").bounding_box()
    page.mouse.click(box["x"] + 20, box["y"] + 20)
    page.keyboard.type("abc")
    time.sleep(1)
    assert difference(before, env_worker.screenshot()) == 0

    operator = sign_in(people.operator)
    open_desktop(operator, running)
    operator.keyboard.press("c")
    expect(operator.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_S * 1000)
    expect(page.locator("[data-screen-pill]")).to_contain_text(f"Taken by {people.operator.username}")
    typed(operator, "seen")
    wait_for(lambda: difference(before, env_worker.screenshot()) > 0.05)
    wait_for(lambda: difference(canvas(page), env_worker.screenshot()) < 3)
    assert difference(canvas(page), before) > 0.05


def test_taking_over_types_text_that_lands_and_is_recorded_as_a_persons_turns(
    sign_in: SignIn, people: People, env_worker: EnvWorker, running: Trajectory
):
    page = sign_in(people.operator)
    open_desktop(page, running)
    page.get_by_role("button", name="Take over").click()
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_S * 1000)
    agent_turns = len(env_worker.agent.told)
    typed(page, "Blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".deed.is-human").first).to_contain_text("Ctrl", timeout=LIMIT_S * 1000)
    assert len(env_worker.agent.told) == agent_turns, "the agent acted although it is paused"

    page.keyboard.press("Shift+Escape")
    page.keyboard.press("b")
    expect(page.locator("[data-screen-pill]")).to_contain_text("Live", timeout=LIMIT_S * 1000)
    wait_for(lambda: len(env_worker.agent.told) > agent_turns)
    assert env_worker.agent.told[agent_turns] == "A person used this desktop since your last action."
    turns = turns_of(running)
    assert text_of(turns) == "Blue hen"
    assert ("human", {"kind": "key", "keys": ["ctrl", "s"]}) in turns
    assert all(turn.frame for turn in running.turns.filter(source="human"))

    running.refresh_from_db()
    assert running.source == Source.HUMAN
    assert Trajectory.objects.filter(retry_of=running, source=Source.SCRIPTED, status="queued").exists()


def test_a_reloaded_page_keeps_control_and_a_closed_one_loses_it(
    sign_in: SignIn, people: People, env_worker: EnvWorker, running: Trajectory
):
    page = sign_in(people.operator)
    open_desktop(page, running)
    page.keyboard.press("c")
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_S * 1000)
    page.reload()
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_S * 1000)

    other = sign_in(make_user(Role.OPERATOR, team=people.team, name="second"))
    open_desktop(other, running)
    expect(other.locator("[data-screen-pill]")).to_contain_text(f"Taken by {people.operator.username}")
    expect(other.locator('[data-do="take"]')).to_be_hidden()
    page.close()
    Control.objects.update(expires_at=timezone.now() + SOON)  # nobody renews it now: no need to wait longer
    expect(other.locator('[data-do="take"]')).to_be_visible(timeout=LIMIT_S * 1000)
    agent_turns = len(env_worker.agent.told)
    wait_for(lambda: len(env_worker.agent.told) > agent_turns)


def test_a_demonstration_is_recorded_scored_and_offered_to_the_replay_inbox(
    sign_in: SignIn, people: People, env_worker: EnvWorker, task: TaskRecord
):
    page = sign_in(people.operator)
    page.goto("/demonstrate/?family=note")
    page.get_by_role("button", name="Record").click()
    page.wait_for_url("**/desktop/")
    expect(page.locator("[data-screen-pill]")).to_contain_text("Waiting")
    trajectory = Trajectory.objects.get()
    env_worker.start(trajectory)
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_S * 1000)
    typed(page, "blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".deed")).not_to_have_count(0)
    time.sleep(0.5)  # the editor writes its file
    page.get_by_role("button", name="Finish").click()
    expect(page.locator('#desktop[data-screen="ended"]')).to_be_visible(timeout=LIMIT_S * 1000)
    expect(page.locator("[data-note]")).to_contain_text("The evaluator gave 1.00 of 1")

    trajectory.refresh_from_db()
    assert (trajectory.status, trajectory.source, trajectory.score) == ("terminated", "human", 1.0)
    turns = turns_of(trajectory)
    assert text_of(turns) == "blue hen"
    assert turns[-2:] == [
        ("human", {"kind": "key", "keys": ["ctrl", "s"]}),
        ("human", {"kind": "terminate", "status": "success"}),
    ]
    assert trajectory.turns.get(index=0).observation_text == task.instruction
    assert ReplayEntry.objects.get().trajectory == trajectory
    page.goto("/replay/")
    expect(page.get_by_text(task.instruction).first).to_be_visible()
