"""The lane of milestones: in the viewer while a trajectory runs, and beside a desktop tried by hand."""

import pytest
from django.db.models import F
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_group, make_task, make_trajectory
from training.contracts.milestone import ReachedMilestone
from webapp.live.models import Stream
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.turns import record_milestones


@pytest.fixture
def running(people: People) -> Trajectory:
    task = make_task()
    task.spec["milestones"] = [{"name": name, "evaluator": {}} for name in ("opened", "saved under its name")]
    task.save()
    group = make_group(experiment=make_experiment(team=people.team), task=task)
    return make_trajectory(group=group, turns=4, status="running", reward=None, num_turns=4)


@pytest.mark.parametrize("width", [1280, 390])
def test_milestones_are_reached_while_one_looks_on(
    sign_in: SignIn, people: People, running: Trajectory, width: int
):
    page = sign_in(people.operator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/trajectories/{running.pk}/")
    lane = page.get_by_role("region", name="Milestones")
    expect(lane.get_by_text("0 of 2 reached")).to_be_visible()
    record_milestones(running.pk, [ReachedMilestone(name="opened", turn=2)])
    expect(lane.get_by_text("1 of 2 reached")).to_be_visible()
    lane.get_by_role("link", name="turn 3").click()
    expect(page).to_have_url(f"{page.url.partition('#')[0]}#turn=3")
    expect(page.locator("[data-place]")).to_contain_text("3")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.goto(f"/trajectories/{running.pk}/desktop/")
    expect(lane.get_by_text("saved under its name")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_viewer_whose_events_are_pruned_loads_anew(sign_in: SignIn, people: People, running: Trajectory):
    page = sign_in(people.operator)
    page.goto(f"/trajectories/{running.pk}/")
    lane = page.get_by_role("region", name="Milestones")
    expect(lane.get_by_text("0 of 2 reached")).to_be_visible()
    record_milestones(running.pk, [ReachedMilestone(name="opened", turn=2)])
    expect(lane.get_by_text("1 of 2 reached")).to_be_visible()
    Trajectory.objects.filter(pk=running.pk).update(milestones=[])
    Stream.objects.filter(name=f"trajectory.{running.pk}").update(last_seq=F("last_seq") + 1)
    expect(lane.get_by_text("0 of 2 reached")).to_be_visible()
