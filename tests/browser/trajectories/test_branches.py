"""Branching in Chromium: the dialog by keyboard, its refusals, and a tree that follows its branches live."""

import re

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.recorded_trajectories import Recorder
from testing.factories import make_group, make_trajectory
from tests.webapp.trajectories.test_branching import HOST, join, keep, qemu_experiment, wanted
from training.contracts.types import Purpose, TrajectoryStatus
from webapp.dispatcher.services import waiting_trajectories
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import announcements, branches, trajectories

SIZES = [(1280, 800), (390, 844)]


@pytest.fixture
def parent(people: People, monkeypatch: pytest.MonkeyPatch) -> Trajectory:
    """Five turns on a virtual machine whose states before the third and fourth turn are kept."""
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, _pk, only: None)
    join(HOST)
    trajectory = make_trajectory(experiment=qemu_experiment(team=people.team), turns=5)
    keep(trajectory, 2, 3)
    return trajectory


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_turn_is_branched_by_keyboard_and_refusals_stand_beside_their_fields(
    sign_in: SignIn, people: People, parent: Trajectory
):
    page = sign_in(people.operator)
    page.goto(f"/trajectories/{parent.pk}/#turn=2")
    button = page.get_by_role("button", name="Branch from")
    expect(button).to_be_disabled()  # nothing was kept before the second turn
    page.keyboard.press("b")
    expect(page.locator("dialog#branch")).to_be_hidden()
    page.keyboard.press("j")
    expect(button).to_have_text("Branch from turn 3")
    expect(page.locator(".cell.has-snapshot")).to_have_count(2)
    page.keyboard.press("b")
    dialog = page.get_by_role("dialog", name="Branch from turn 3")
    size = dialog.get_by_label("Continuations")
    expect(size).to_be_focused()
    size.fill("40")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("1 to 16 continuations, not 40")).to_be_visible()
    assert Trajectory.objects.count() == 1
    size.fill("3")
    dialog.get_by_label("Temperature").fill("0.8")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/trajectories/{parent.pk}/tree/#group-\d+$"))
    expect(page.locator("[data-node]")).to_have_count(4)
    group = parent.branch_groups.get()
    assert (group.size, group.temperature, group.branch_turn) == (3, 0.8, 2)


@pytest.mark.parametrize("size", SIZES)
def test_the_reward_is_attacked_from_a_kept_turn(
    sign_in: SignIn, people: People, parent: Trajectory, size: tuple[int, int]
):
    page = sign_in(people.operator)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"/trajectories/{parent.pk}/#turn=3")
    page.get_by_role("button", name="Branch from turn 3").click()
    page.get_by_role("button", name="Attack the reward").click()
    expect(page).to_have_url(re.compile(r"/groups/\d+/$"))
    group = parent.branch_groups.get()
    assert (group.purpose, group.branch_turn) == ("attack", 2)
    assert fits(page)
    page.goto(f"/tasks/{parent.task.task_set.name}/{parent.task_id}/")
    attacks = page.get_by_role("region", name="Attackers")
    expect(attacks.get_by_text(f"is done, from turn 3 of trajectory {parent.pk}")).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_the_tree_follows_its_branches_while_they_run(
    sign_in: SignIn, people: People, parent: Trajectory, size: tuple[int, int]
):
    page = sign_in(people.viewer)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"/trajectories/{parent.pk}/tree/")
    expect(page.locator("[data-node]")).to_have_count(1)
    made = branches.branch_trajectory(trajectory=parent, request=wanted(2, 2))
    expect(page.locator("[data-node]")).to_have_count(3)
    expect(page.get_by_text("Waiting for a desktop")).to_have_count(2)

    group = make_group(
        experiment=parent.experiment, task=parent.task, purpose=Purpose.BRANCH, parent=parent, branch_turn=0
    )
    runner = Recorder(group)
    announcements.announce(parent, parent.status)
    row = page.locator(f'[data-node="{runner.trajectory.pk}"]')
    expect(row).to_be_visible()
    for count in (1, 2):
        runner.turn()
        expect(row.locator(".tree-cell")).to_have_count(count)
    trajectories.end_trajectory(trajectory_id=runner.trajectory.pk, status=TrajectoryStatus.CANCELLED)
    expect(row.get_by_text("Cancelled")).to_be_visible()
    assert fits(page)
    assert made.trajectories.count() == 2


def test_the_tree_is_walked_by_keyboard(sign_in: SignIn, people: People, parent: Trajectory):
    group = make_group(
        experiment=parent.experiment, task=parent.task, purpose=Purpose.BRANCH, parent=parent, branch_turn=2
    )
    child = make_trajectory(group=group, turns=4)
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{child.pk}/tree/")
    page.keyboard.press("j")
    expect(page.locator(f'[data-node="{parent.pk}"] .tree-name')).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    expect(page.locator(f'[data-node="{child.pk}"] .tree-cell').first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/trajectories/{child.pk}/#turn=3$"))
    expect(page.locator(".cell.is-inherited")).to_have_count(2)
    expect(page.get_by_text(f"of trajectory {parent.pk} from turn 3 on")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile(rf"/trajectories/{child.pk}/tree/$"))


def test_snapshots_are_switched_on_and_appear_while_the_trajectory_runs(
    sign_in: SignIn, people: People, parent: Trajectory
):
    group = make_group(experiment=parent.experiment, task=parent.task)
    runner = Recorder(group)
    runner.turn()
    page = sign_in(people.operator)
    page.goto(f"/trajectories/{runner.trajectory.pk}/")
    switch = page.get_by_role("switch", name="Keep snapshots")
    expect(switch).to_have_attribute("aria-checked", "false")
    page.keyboard.press("s")
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("button", name="Branch from")).to_have_count(0)
    runner.open_turn()
    keep(runner.trajectory, 1)
    expect(page.locator('[data-cell="1"].has-snapshot')).to_be_visible()
    expect(page.get_by_role("button", name="Branch from turn 2")).to_be_enabled()
    runner.trajectory.refresh_from_db()
    assert runner.trajectory.keeps_snapshots
