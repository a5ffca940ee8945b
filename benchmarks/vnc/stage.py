"""What `vnc_proxy` measures on: one X11 desktop of a private installation, and two ways to watch it."""

from __future__ import annotations

import asyncio
import hashlib
import random
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from benchmarks.vnc.rfb_client import RfbViewer
from testing.private_installation import Instance
from testing.watch_installation import wait_for
from training.content.task_sets import first_desk
from training.contracts.config import ExperimentConfig
from training.contracts.types import Action, ActionKind, Purpose, Source, Task
from webapp.lib.supervisor.ports import free_port

SCREEN = (1280, 720)
BOX = (40, 40, 320, 240)
"""The window that changes: x, y, width, height; 300 KB of raw pixels."""
LIMIT_S = 120


@dataclass
class Stage:
    """What is measured: a desktop and the two ways to it."""

    deskhand: Instance
    cookie: str
    trajectory_id: int
    vnc_socket: str
    painter: Painter
    web: psutil.Process
    worker: psutil.Process

    @property
    def url(self) -> str:
        return f"{self.deskhand.url.replace('http', 'ws', 1)}/ws/screens/{self.trajectory_id}/"

    async def viewer(self) -> RfbViewer:
        headers = {"Cookie": self.cookie}
        return await RfbViewer.open(self.url, additional_headers=headers, origin=self.deskhand.url)


class Painter:
    """A window on the desktop whose colour changes at a known moment."""

    def __init__(self, display_socket: str) -> None:
        from workers.desktops.x11.display_connection import X11Display

        self.display = X11Display(display_socket)
        self.window = self.display.root.create_window(
            *BOX, 0, self.display.screen.root_depth, override_redirect=True, background_pixel=0
        )
        self.window.map()
        self.display.display.sync()
        self.colours = random.Random(3)

    def change(self) -> tuple[int, float]:
        """(new colour, when it was drawn)."""
        colour = self.colours.randrange(1 << 24)
        self.window.change_attributes(background_pixel=colour)
        self.window.clear_area()
        self.display.display.flush()
        return colour, time.perf_counter()

    async def still(self) -> str:
        """Digest of all pixels and of the pointer's place, with the window in its first colour."""
        self.window.change_attributes(background_pixel=0)
        self.window.clear_area()
        self.display.display.sync()
        await asyncio.sleep(1)
        at = self.display.root.query_pointer()
        return hashlib.sha256(self.display.pixels() + f"{at.root_x},{at.root_y}".encode()).hexdigest()


@dataclass
class Peer:
    """One proxy: how to open a viewer, and whose CPU it uses."""

    name: str
    open: Callable[[], Any]
    processes: list[psutil.Process]
    latencies_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    updates: int = 0

    @property
    def cpu_ms(self) -> float:
        """Per update."""
        return 1000 * self.cpu_s / max(1, self.updates)


def prepare(deskhand: Instance) -> Stage:
    """A trajectory that waits on its desktop, and a signed-in viewer."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from workers.desktops.host.client import DeskHostClient

    settings.ALLOWED_HOSTS = ["*"]
    browser = Client()
    browser.force_login(User.objects.get(username=deskhand.credentials[0]))
    trajectory_id = start_waiting()
    with DeskHostClient(settings.DESKHOST_SOCKET) as host:
        (row,) = [status for status in host.list() if status.lease_id]
    endpoints = row.info.endpoints
    name = settings.SESSION_COOKIE_NAME
    return Stage(
        deskhand=deskhand,
        cookie=f"{name}={browser.cookies[name].value}",
        trajectory_id=trajectory_id,
        vnc_socket=endpoints.vnc,
        painter=Painter(endpoints.display),
        web=child(deskhand, "uvicorn"),
        worker=child(deskhand, "celery"),
    )


def start_waiting() -> int:
    """A trajectory whose script only waits; returns once its screen is there."""
    from webapp.accounts.models import Team
    from webapp.experiments.models import Experiment, ExperimentStatus, TaskRecord, TaskSet
    from webapp.screens.models import Screen
    from webapp.trajectories.services.groups import GroupSpec, create_group

    task = waiting_task()
    record = TaskRecord.made_from(task, task_set=TaskSet.objects.create(name="waiting"))
    record.save()
    team = Team.objects.order_by("pk")[0]
    config = ExperimentConfig.model_validate({"desktops": {"trajectory_timeout_s": 3600}})
    patient = Experiment.objects.create(
        team=team, name="waiting", status=ExperimentStatus.FINISHED, config=config.model_dump(mode="json")
    )
    request = GroupSpec(task=record, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    group = create_group(request=request, team_id=team.pk, experiment=patient)
    screens = Screen.objects.filter(trajectory__group=group, trajectory__num_turns__gt=0)
    wait_for("a desktop", screens.exists, patience_s=LIMIT_S, poll_s=0.1)
    return group.trajectories.get().pk


def waiting_task() -> Task:
    """First desk's editor task on a large screen; its script waits in turns of a minute."""
    task = next(task for task in first_desk.generate() if task.family == "note")
    wait = Action(kind=ActionKind.WAIT, seconds=60).model_dump(mode="json")
    changes = {"oracle": {**task.oracle, "actions": [wait] * 60}, "max_turns": 60, "screen": SCREEN}
    return task.model_copy(update=changes)


def child(deskhand: Instance, word: str) -> psutil.Process:
    """The installation's own process whose command line has this word."""
    assert deskhand.process is not None
    family = psutil.Process(deskhand.process.pid).children(recursive=True)
    return next(process for process in family if any(word in part for part in process.cmdline()))


@asynccontextmanager
async def websockify(vnc_socket: str) -> AsyncIterator[tuple[str, psutil.Process]]:
    """The peer: (url, process); it forks one more process per viewer."""
    port = free_port()
    command = [sys.executable, "-m", "websockify", f"--unix-target={vnc_socket}", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("websockify did not start")
            await asyncio.sleep(0.1)
        yield f"ws://127.0.0.1:{port}/", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)
