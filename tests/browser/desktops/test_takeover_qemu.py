"""People at real virtual machines: QEMU's own VNC server in noVNC, taken over, and demonstrated on.

Needs QEMU and the image that `make guest-image` builds; without them every test says so and is skipped.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import (
    LIMIT_S,
    EnvWorker,
    canvas,
    difference,
    note_task,
    open_desktop,
    record_of,
    text_of,
    turns_of,
    typed,
    wait_for,
)
from testing.desk_host_process import running_host
from tests.workers.desktops.qemu.test_desktops import OPTIONS, missing
from training.contracts.config import DesktopConfig
from training.contracts.types import Purpose, Source
from webapp.replay.models import ReplayEntry
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.desktops.host.client import DeskHostClient

pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(1500),
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        bool(missing),
        reason=f"SCREENS OF VIRTUAL MACHINES ARE NOT TESTED: no {' and no '.join(missing)}; make guest-image",
    ),
]
BOOT_LIMIT_S = 900
"""A template may have to be booted first."""
FILE_MENU = (155, 132)
"""Where the task's editor has it; its menu covers a quarter of the screen."""
MACHINES = DesktopConfig.model_validate(
    {"provider": "qemu", "trajectory_timeout_s": 1200, "turn_timeout_s": 120}
)


@pytest.fixture(scope="module")
def vm_client() -> Iterator[DeskHostClient]:
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, *OPTIONS) as client:
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def env_worker(vm_client: DeskHostClient, settings, people: People) -> Iterator[EnvWorker]:
    settings.DESKHOST_SOCKET = vm_client.socket_path
    worker = EnvWorker(vm_client)
    yield worker
    worker.stop()


def last_frame(trajectory: Trajectory) -> Image.Image:
    """The machine's screen by its monitor, as the agent was shown it; nothing of it came by VNC."""
    trajectory.refresh_from_db()
    return Image.open(BytesIO(read_frame(trajectory.last_frame))).convert("RGB")


def take_over(page: Page) -> None:
    page.keyboard.press("c")
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=1000 * LIMIT_S)


def click(page: Page, place: tuple[int, int]) -> None:
    """At a place of the desktop, in its own pixels."""
    shown = page.locator("[data-screen] canvas")
    scale = shown.bounding_box()["width"] / 512
    shown.click(position={"x": place[0] * scale, "y": place[1] * scale})


def test_a_machines_own_screen_is_watched_taken_over_and_handed_back(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    request = GroupSpec(
        task=record_of(note_task("blue hen")),
        size=1,
        purpose=Purpose.TRAIN,
        source=Source.SCRIPTED,
        desktops=MACHINES,
    )
    trajectory = create_group(request=request, team_id=people.team.pk).trajectories.get()
    env_worker.start(trajectory)
    wait_for(lambda: Trajectory.objects.get(pk=trajectory.pk).num_turns > 0, BOOT_LIMIT_S)

    watcher, page = sign_in(people.viewer), sign_in(people.operator)
    open_desktop(watcher, trajectory)
    wait_for(lambda: difference(canvas(watcher), last_frame(trajectory)) < 3)
    before = canvas(watcher)
    watcher.keyboard.type("abc")

    open_desktop(page, trajectory)
    take_over(page)
    click(page, FILE_MENU)
    wait_for(lambda: difference(canvas(watcher), before) > 3)
    page.keyboard.press("Escape")
    typed(page, "Blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".turn-row.is-human").first).to_contain_text("Ctrl", timeout=1000 * LIMIT_S)
    wait_for(lambda: difference(canvas(watcher), before) > 0.05)
    agent_turns = len(env_worker.agent.texts)
    page.keyboard.press("Shift+Escape")
    page.keyboard.press("b")
    wait_for(lambda: len(env_worker.agent.texts) > agent_turns)
    turns = turns_of(trajectory)
    assert text_of(turns) == "Blue hen", (
        "what the watcher typed came through, or what the person typed did not"
    )
    assert ("human", {"kind": "key", "keys": ["ctrl", "s"]}) in turns
    clicked = next(action for source, action in turns if source == "human")
    assert clicked["kind"] == "click"
    assert abs(clicked["x"] - FILE_MENU[0]) <= 1
    assert abs(clicked["y"] - FILE_MENU[1]) <= 1
    wait_for(lambda: difference(canvas(watcher), last_frame(trajectory)) < 3)


def test_a_demonstration_on_a_machine_is_recorded_scored_and_offered_to_the_replay_inbox(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    task = record_of(note_task("blue hen"))
    page = sign_in(people.operator)
    page.goto("/demonstrate/?desktop=qemu&family=note")
    expect(page.get_by_label("Desktop", exact=True)).to_have_value("qemu")
    page.get_by_role("button", name="Record").click()
    page.wait_for_url("**/desktop/")
    trajectory = Trajectory.objects.get()
    assert trajectory.group.desktops["provider"] == "qemu"
    env_worker.start(trajectory)
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=1000 * BOOT_LIMIT_S)
    typed(page, "blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".turn-row.is-human").first).to_contain_text("Ctrl", timeout=1000 * LIMIT_S)
    time.sleep(5)  # an emulated editor writes its file
    page.get_by_role("button", name="Finish").click()
    expect(page.locator("[data-note]")).to_contain_text(
        "The evaluator gave 1.00 of 1", timeout=1000 * LIMIT_S
    )

    trajectory.refresh_from_db()
    assert (trajectory.status, trajectory.source, trajectory.score) == ("terminated", "human", 1.0)
    turns = turns_of(trajectory)
    assert text_of(turns) == "blue hen"
    assert turns[-1] == ("human", {"kind": "terminate", "status": "success"})
    assert trajectory.turns.get(index=0).observation_text == task.instruction
    assert ReplayEntry.objects.get().trajectory == trajectory
