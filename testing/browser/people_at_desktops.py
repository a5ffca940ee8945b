"""People at real desktops in Chromium: an env worker in threads of the test, and what noVNC has drawn."""

import base64
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO

from django.db import close_old_connections, connections
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Page, expect

from training.content.task_sets import first_desk
from training.contracts.types import Action, ActionKind, Observation, Source, Task, Turn
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import beat_trajectories
from workers.desktops.contract import Endpoints
from workers.desktops.host.client import DeskHostClient
from workers.desktops.registry import open_agent, open_console
from workers.env import slots
from workers.env.actors import Decision
from workers.env.rollout import Rollout, TrajectoryEnded
from workers.env.takeover.screen_offer import screen_offered
from workers.env.trajectory_job import claim, run

LIMIT_S = 90


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
        self.texts: list[str] = []

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        self.texts.append(observation.text)
        return Decision(actions=(Action(kind=ActionKind.WAIT, seconds=0.2),))

    def close(self) -> None:
        pass


@dataclass
class EnvWorker:
    """Runs trajectories in threads of this process, as the Celery job does."""

    client: DeskHostClient
    threads: list[threading.Thread] = field(default_factory=list)
    agent: PatientAgent = field(default_factory=PatientAgent)
    pks: list[int] = field(default_factory=list)
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._start(self._beat)

    def start(self, trajectory: Trajectory) -> None:
        """As one more slot."""
        self.pks.append(trajectory.pk)
        work = run if trajectory.source == Source.HUMAN else self._run_agent
        self._start(self._work, work, trajectory.pk)

    def run_to_end(self, trajectory: Trajectory) -> None:
        """A scripted one, as the Celery job does; it is over when this returns."""
        self.pks.append(trajectory.pk)
        thread = threading.Thread(target=self._work, args=(run, trajectory.pk), daemon=True)
        thread.start()
        thread.join(LIMIT_S)
        assert not thread.is_alive()

    def has_window(self, text: str) -> bool:
        """Whether the desktop has a window of this title."""
        agent = open_agent(self._endpoints())
        try:
            return text in agent.execute(["wmctrl", "-l"]).output
        finally:
            agent.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def _beat(self) -> None:
        while not self.is_stopped.wait(1):
            beat_trajectories(self.pks)
        connections.close_all()

    def _work(self, work: Callable[[int], None], pk: int) -> None:
        try:
            with contextlib.suppress(TrajectoryEnded):
                work(pk)
        finally:
            slots.drop_environment()
            connections.close_all()

    def _run_agent(self, pk: int) -> None:
        close_old_connections()
        assignment = claim(pk)
        assert assignment is not None
        environment = slots.clean_environment(assignment.config.desktops, assignment.task.screen, f"t-{pk}")
        with screen_offered(pk, environment):
            Rollout(assignment, environment, self.agent).run()

    def stop(self) -> None:
        """Cancel what still runs and wait for its end."""
        unfinished = Trajectory.objects.exclude(status__in=["terminated", "truncated", "errored"])
        unfinished.update(status="cancelled")
        self.is_stopped.set()
        for thread in self.threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()

    def _endpoints(self) -> Endpoints:
        """Of the only leased desktop."""
        (leased,) = [row for row in self.client.list() if row.lease_id]
        return leased.info.endpoints

    def file(self, path: str) -> str:
        """Content of a file of the desktop; "" when it is not there."""
        agent = open_agent(self._endpoints())
        try:
            return (agent.get(path) or b"").decode()
        finally:
            agent.close()

    def screenshot(self) -> Image.Image:
        """What the desktop shows, read from its display server and not by VNC."""
        console = open_console(self._endpoints())
        try:
            return console.image()
        finally:
            console.close()


def wait_for(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
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


def record_of(task: Task) -> TaskRecord:
    """Its row, in a set of its own."""
    row = TaskRecord.made_from(task, task_set=TaskSet.objects.create(name="first-desk"))
    row.save()
    return row
