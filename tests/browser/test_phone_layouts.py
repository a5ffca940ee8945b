"""On a phone, words stay words: long names and reasons wrap between them and keep their columns."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation
from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_task_set,
    make_trajectory,
    make_user,
)
from webapp.accounts.models import Role
from webapp.experiments.models import Attempt, CheckpointRecord, Experiment, MetricPoint
from webapp.trajectories.models import Trajectory

NAME = "First desk with a longer name"


@pytest.fixture
def run(people: People) -> Experiment:
    """A finished one whose verdict is a sentence."""
    found = make_experiment(
        team=people.team, owner=people.operator, name=NAME, status="finished", ended_at=timezone.now()
    )
    for name, step, won in (("before", 0, 12), ("after", 3, 17)):
        make_evaluation(found, won=won, total=72, temperature=0.0, name=name, step=step)
    return found


@pytest.fixture
def phone(sign_in: SignIn, people: People) -> Page:
    page = sign_in(people.operator)
    page.set_viewport_size({"width": 390, "height": 844})
    return page


def box(found: Locator) -> dict[str, float]:
    shown = found.bounding_box()
    assert shown is not None
    return dict(shown)


def test_the_name_of_an_ended_run_stands_on_a_line_of_its_own(phone: Page, run: Experiment):
    phone.goto("/")
    row = phone.locator(".needs li", has_text=NAME)
    row.get_by_text("Flat").wait_for()
    assert box(row.locator(".need-text"))["width"] >= 150
    assert box(row)["height"] < 120


def test_the_path_to_a_page_wraps_between_its_names(phone: Page, run: Experiment, people: People):
    other = make_experiment(team=people.team, name=NAME)
    phone.goto(f"/experiments/tasks/?id={run.pk}&id={other.pk}")
    names = phone.locator(".breadcrumbs > *")
    assert names.count() == 3
    assert max(box(one)["height"] for one in names.all()) < 24


FINGER = """(found, pixels) => {
  found.scrollIntoView({ block: "center" });
  const { left, width, top, height } = found.getBoundingClientRect();
  const ends = [top + height / 2 - pixels / 2, top + height / 2 + pixels / 2];
  return ends.every((y) => document.elementFromPoint(left + width / 2, y) === found);
}"""


@pytest.mark.parametrize("name", [".breadcrumbs a", ".chart-help"])
def test_small_targets_take_a_finger(phone: Page, run: Experiment, name: str):
    MetricPoint.objects.create(experiment=run, name="rollout/success", step=1, value=0.5)
    phone.goto(f"/experiments/{run.pk}/")
    small = phone.locator(name).first
    small.wait_for()
    assert small.evaluate(FINGER, 24)


def test_why_an_attempt_was_lost_is_read_in_words(phone: Page, run: Experiment):
    Attempt.objects.create(
        experiment=run, number=1, status="lost", reason="gpu worker gpu@vm stopped answering"
    )
    phone.goto(f"/experiments/{run.pk}/?tab=attempts")
    assert box(phone.locator(".attempts .reason"))["width"] >= 150


def test_costs_are_lines_and_no_columns_of_words(phone: Page, run: Experiment):
    phone.goto(f"/experiments/{run.pk}/?tab=cost")
    heights = [box(row)["height"] for row in phone.locator(".cost tbody tr").all()]
    assert heights
    assert max(heights) < 70


@pytest.mark.parametrize("width", [390, 1280])
def test_the_export_of_a_checkpoint_is_a_row_below_its_heads(phone: Page, run: Experiment, width: int):
    checkpoint = CheckpointRecord.objects.create(
        experiment=run, step=3, policy_version=3, path="/a/00001-grpo-3"
    )
    export = checkpoint.exports.create(dtype="float32", status="finished", path="/a/export", total_bytes=5)
    phone.set_viewport_size({"width": width, "height": 844})
    phone.goto(f"/experiments/{run.pk}/?tab=checkpoints")
    row = phone.locator(f"#export-{export.pk}")
    assert "underline" not in row.locator("td").nth(1).evaluate(
        "(cell) => getComputedStyle(cell).textDecoration"
    )
    panel = phone.locator(".panel", has=row)
    assert box(row)["width"] > 0.9 * box(panel)["width"]
    if width == 1280:
        heads, cells = panel.locator("th"), row.locator("td")
        assert [box(one)["x"] for one in heads.all()] == [box(one)["x"] for one in cells.all()]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/trajectories/", "Score"),
        ("/experiments/", "Held-out success"),
        ("/replay/list/", "Reward"),
        ("/tasks/", "Verified"),
        ("/tasks/menus/", "Solved"),
        ("/experiments/{run}/?tab=attempts", "Reason"),
        ("/experiments/{run}/?tab=evaluations", "Solved"),
    ],
)
def test_what_a_row_is_and_how_it_went_is_seen_first(
    phone: Page, run: Experiment, people: People, path: str, key: str
):
    """The rest of a wide table is in its box, beside them; the page itself never scrolls sideways."""
    task = make_task(task_set=make_task_set("menus"))
    task.instruction = 'Type "yellow elephant" and save it as a note.'
    task.save()
    group = make_group(experiment=run, task=task)
    for place, status in enumerate(("truncated", "terminated", "parked")):
        row = make_trajectory(group=group, member=place, status=status, reward=1.0, score=1.0)
        make_replay_entry(trajectory=row)
    Attempt.objects.create(
        experiment=run, number=1, status="lost", reason="gpu worker gpu@vm stopped answering"
    )
    phone.goto(path.format(run=run.pk))
    head = phone.get_by_role("columnheader", name=key, exact=True)
    shown, table = box(head), box(phone.locator(".table-scroll", has=head))
    assert shown["x"] + shown["width"] <= table["x"] + table["width"] + 1
    assert phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_member_is_changed_and_removed_without_scrolling(sign_in: SignIn, people: People):
    make_user(Role.VIEWER, team=people.team)
    page = sign_in(make_user(Role.ADMIN, team=people.team))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/team/")
    buttons = page.get_by_role("button", name=re.compile("Remove|New password")).all()
    assert len(buttons) > 4
    panel = box(page.locator(".panel").first)
    for button in buttons:
        assert box(button)["x"] + box(button)["width"] <= panel["x"] + panel["width"]


def test_the_group_below_the_viewer_stands_still(phone: Page, run: Experiment):
    group = make_group(experiment=run)
    watched = [make_trajectory(group=group, member=place, turns=2) for place in range(2)][0]
    phone.goto(f"/trajectories/{watched.pk}/")
    lane = phone.locator(".lane-rows")
    assert box(lane.locator(".lane-row").first)["width"] > 300
    assert lane.evaluate("(found) => found.scrollWidth <= found.clientWidth")


def test_the_list_of_trajectories_fits_a_small_laptop(phone: Page, run: Experiment):
    group = make_group(experiment=run, purpose="demonstration")
    for place, status in enumerate(("truncated", "terminated", "errored")):
        shown = {"purpose": group.purpose, "step": 12, "advantage": -1.62, "policy_version": 12}
        make_trajectory(group=group, member=place, status=status, reward=1.0, **shown)
    Trajectory.objects.update(created_at=timezone.now() - timedelta(minutes=42))
    phone.set_viewport_size({"width": 1280, "height": 800})
    phone.goto("/trajectories/")
    assert phone.locator(".trajectory-table tbody tr").count() == 3
    assert phone.locator(".table-scroll").evaluate("(found) => found.scrollWidth <= found.clientWidth")
