"""Real desktops in the browser: watch one, take it over, record a demonstration.

A real desk host owns the desktops, a thread of this process is the env worker, Chromium runs noVNC.
"""

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

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
from testing.factories import make_user
from training.content.task_sets import first_desk
from training.contracts.types import Purpose, Source
from webapp.accounts.models import Role
from webapp.experiments.models import TaskRecord
from webapp.replay.models import ReplayEntry
from webapp.screens.models import Control
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.desktop, pytest.mark.django_db(transaction=True)]
SOON = timedelta(seconds=4)


@pytest.fixture
def task(transactional_db: None) -> TaskRecord:
    return record_of(note_task("blue hen"))


@pytest.fixture
def running(env_worker: EnvWorker, people: People, task: TaskRecord) -> Trajectory:
    """A trajectory of an agent that waits, on its desktop."""
    request = GroupSpec(task=task, size=1, purpose=Purpose.TRAIN, source=Source.SCRIPTED)
    trajectory = create_group(request=request, team_id=people.team.pk).trajectories.get()
    env_worker.start(trajectory)
    wait_for(lambda: Trajectory.objects.get(pk=trajectory.pk).num_turns > 0)
    return trajectory


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
    agent_turns = len(env_worker.agent.texts)
    typed(page, "Blue hen")
    page.keyboard.press("Control+s")
    expect(page.locator(".turn-row.is-human").first).to_contain_text("Ctrl", timeout=LIMIT_S * 1000)
    assert len(env_worker.agent.texts) == agent_turns, "the agent acted although it is paused"

    page.keyboard.press("Shift+Escape")
    page.keyboard.press("b")
    expect(page.locator("[data-screen-pill]")).to_contain_text("Live", timeout=LIMIT_S * 1000)
    wait_for(lambda: len(env_worker.agent.texts) > agent_turns)
    assert env_worker.agent.texts[agent_turns] == "A person used this desktop since your last action."
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
    agent_turns = len(env_worker.agent.texts)
    wait_for(lambda: len(env_worker.agent.texts) > agent_turns)


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
    expect(page.locator(".turn-row")).not_to_have_count(0)
    wait_for(lambda: env_worker.file(first_desk.NOTE_FILE).strip() == "blue hen")
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
