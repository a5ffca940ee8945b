"""A person demonstrates an OSWorld task on a desktop of ours: DesktopEnv sets up and scores, noVNC shows."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import (
    LIMIT_S,
    EnvWorker,
    canvas,
    text_of,
    turns_of,
    typed,
    wait_for,
)
from tests.workers.environments.test_osworld_episodes import write_note
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.models import Trajectory
from workers.desktops.host.client import DeskHostClient
from workers.environments.osworld.find_python import FOLDER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.desktop,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="install it by `make osworld-env`"),
]
OPEN_LIMIT_S = 300
"""DesktopEnv's imports alone take many seconds on a busy machine."""


@pytest.fixture
def env_worker(desk_client: DeskHostClient, settings, people: People, tmp_path) -> Iterator[EnvWorker]:
    settings.DESKHOST_SOCKET = desk_client.socket_path
    settings.DATA_DIR = tmp_path / "data"
    worker = EnvWorker(desk_client)
    yield worker
    worker.stop()


def test_a_person_solves_an_osworld_task_and_desktop_env_scores_it(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    import_task_set(name="osworld", origin="test", tasks=[write_note("blue hen")])
    page = sign_in(people.operator)
    page.goto("/demonstrate/?desktop=osworld-x11")
    page.get_by_role("button", name="Record").click()
    page.wait_for_url("**/desktop/")
    trajectory = Trajectory.objects.get()
    assert trajectory.group.desktops["provider"] == "osworld"
    env_worker.start(trajectory)
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=1000 * OPEN_LIMIT_S)
    assert canvas(page).size == (512, 384)
    typed(page, "blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".turn-row.is-human").first).to_contain_text("Ctrl", timeout=1000 * LIMIT_S)
    wait_for(lambda: trajectory.turns.values("frame").distinct().count() > 1)
    page.get_by_role("button", name="Finish").click()
    expect(page.locator("[data-note]")).to_contain_text(
        "The evaluator gave 1.00 of 1", timeout=1000 * LIMIT_S
    )
    trajectory.refresh_from_db()
    assert (trajectory.status, trajectory.source, trajectory.score) == ("terminated", "human", 1.0)
    assert text_of(turns_of(trajectory)) == "blue hen"
