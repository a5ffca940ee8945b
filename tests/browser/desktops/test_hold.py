"""An agent waits for a person: before its first turn, or while one watches; and text is typed by a box."""

import time

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import (
    LIMIT_S,
    EnvWorker,
    note_task,
    record_of,
    text_of,
    turns_of,
    wait_for,
)
from testing.factories import make_experiment
from training.contracts.types import Purpose, Source
from webapp.accounts.models import AuditAction, AuditEntry
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.slow, pytest.mark.desktop, pytest.mark.django_db(transaction=True)]
LIMIT_MS = LIMIT_S * 1000
TEXT = "grüße 你好 hen"


def queued(people: People) -> Trajectory:
    """A trajectory of an experiment, whose agent acts as soon as it may."""
    experiment = make_experiment(team=people.team)
    request = GroupSpec(
        task=record_of(note_task("blue hen")), size=1, purpose=Purpose.TRAIN, source=Source.SCRIPTED
    )
    group = create_group(request=request, team_id=people.team.pk, experiment=experiment)
    return group.trajectories.get()


def has_control(page: Page) -> None:
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_MS)


def test_the_next_desktop_is_held_before_its_agent_acts_and_text_of_any_script_is_typed(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    trajectory = queued(people)
    page = sign_in(people.operator)
    page.goto(f"/experiments/{trajectory.experiment_id}/?tab=desktops")
    page.get_by_role("button", name="Hold the next desktop").click()
    page.wait_for_url(f"**/trajectories/{trajectory.pk}/desktop/")
    env_worker.start(trajectory)
    has_control(page)
    assert env_worker.agent.texts == [], "the agent acted although the desktop is held"
    page.get_by_label("Type this at the desktop").fill(TEXT)
    page.get_by_role("button", name="Type", exact=True).click()
    wait_for(lambda: text_of(turns_of(trajectory)) == TEXT)
    page.locator("[data-screen] canvas").focus()
    page.keyboard.press("Control+s")
    wait_for(lambda: env_worker.file("/home/user/note.txt").startswith(TEXT))
    page.keyboard.press("Shift+Escape")
    page.get_by_role("button", name="Let the agent go on").click()
    wait_for(lambda: env_worker.agent.texts)


def test_an_agent_waits_for_one_who_watches_and_stays_itself_until_it_is_taken_over(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    trajectory = queued(people)
    env_worker.start(trajectory)
    wait_for(lambda: Trajectory.objects.get(pk=trajectory.pk).num_turns > 0)
    page = sign_in(people.operator)
    page.goto(f"/trajectories/{trajectory.pk}/")
    page.get_by_role("button", name="Watch live").wait_for()
    page.keyboard.press("v")
    page.wait_for_url("**/desktop/")
    expect(page.locator("[data-screen-pill]")).to_contain_text("The agent waits", timeout=LIMIT_MS)
    time.sleep(1)
    num_turns = len(env_worker.agent.texts)
    time.sleep(2)
    assert len(env_worker.agent.texts) == num_turns
    page.keyboard.press("b")
    wait_for(lambda: len(env_worker.agent.texts) > num_turns)
    assert not any("person" in said for said in env_worker.agent.texts), "no person has acted"
    trajectory.refresh_from_db()
    assert trajectory.source == Source.SCRIPTED
    assert not Trajectory.objects.filter(retry_of=trajectory).exists(), "its place was not run again"
    assert not AuditEntry.objects.filter(action=AuditAction.TOOK_CONTROL).exists()

    page.goto(f"/trajectories/{trajectory.pk}/")
    page.get_by_role("button", name="Watch live").wait_for()
    page.keyboard.press("v")
    expect(page.locator("[data-screen-pill]")).to_contain_text("The agent waits", timeout=LIMIT_MS)
    page.keyboard.press("c")
    has_control(page)
    trajectory.refresh_from_db()
    assert trajectory.source == Source.HUMAN
    assert AuditEntry.objects.filter(action=AuditAction.TOOK_CONTROL).count() == 1
