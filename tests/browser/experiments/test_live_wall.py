"""The experiment page while trajectories run: what the services publish is seen without a reload."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Route, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_frame, make_group, make_trajectory
from training.contracts.trainer_reports import Alarm, StepAlarms
from training.contracts.types import (
    Action,
    ActionKind,
    Completion,
    Observation,
    Purpose,
    TrajectoryStatus,
    Turn,
)
from webapp.experiments.models import Experiment
from webapp.experiments.services import alarms, metrics, stages
from webapp.fleet.models import Desktop
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import trajectories as trajectory_services
from webapp.trajectories.services import turns


@pytest.fixture
def experiment(people: People) -> Experiment:
    return make_experiment(team=people.team, started_at=timezone.now() - timedelta(minutes=1))


@pytest.fixture
def running(experiment: Experiment) -> Trajectory:
    values = {"host": "h", "provider": "x11", "width": 512, "height": 384}
    desktop = Desktop.objects.create(name="desk", phase="leased", **values)
    group = make_group(experiment=experiment, size=1, purpose=Purpose.TRAIN)
    return make_trajectory(group=group, status="running", turns=1, desktop=desktop)


def take_turn(trajectory: Trajectory, index: int, action: Action) -> str:
    """The frame's sha256."""
    sha = make_frame(trajectory.team, index + 3)
    now = timezone.now()
    shown = Observation(sha256=sha, width=512, height=384)
    turns.open_turn(
        trajectory_id=trajectory.pk, index=index, source="policy", observation=shown, observed_at=now
    )
    turn = Turn(index=index, observation=shown, completion=Completion(text="x"), action=action)
    turns.close_turn(trajectory_id=trajectory.pk, turn=turn, thought="", completed_at=now)
    return sha


def test_a_tile_shows_each_new_frame_the_last_action_and_the_reward(
    sign_in: SignIn, people: People, experiment: Experiment, running: Trajectory
):
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    tile = page.locator(f'[data-trajectory="{running.pk}"]')
    expect(tile.locator("[data-turn]")).to_have_text("Turn 1/8")
    expect(page.locator("[data-live-pill]").first).to_contain_text("Live")

    sha = take_turn(running, 1, Action(kind=ActionKind.TYPE, text="lantern"))
    expect(tile.locator("img")).to_have_attribute("src", f"/frames/{sha}.thumb.jpg")
    expect(tile).to_contain_text("Type “lantern”")
    expect(tile.locator("[data-turn]")).to_have_text("Turn 2/8")

    trajectory_services.move_trajectory(trajectory=running, to=TrajectoryStatus.EVALUATING)
    trajectory_services.end_trajectory(
        trajectory_id=running.pk, status=TrajectoryStatus.TERMINATED, score=1.0, reward=0.9
    )
    expect(tile.locator(".verdict")).to_have_text("+0.90")
    expect(page.locator(".group-card")).to_contain_text("+0.90")
    tile.click()
    expect(page).to_have_url(f"{page.url.split('/trajectories')[0]}/trajectories/{running.pk}/")


def test_stages_alarms_and_charts_follow_the_trainer(sign_in: SignIn, people: People, experiment: Experiment):
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    expect(page.get_by_text("The first numbers appear")).to_be_visible()

    stages.start_stage(experiment_id=experiment.pk, name="grpo", total=20, unit="steps")
    stages.record_progress(experiment_id=experiment.pk, stage="grpo", done=3, total=20)
    expect(page.locator("[data-stage=grpo]")).to_contain_text("3 / 20 steps")
    for step in (1, 2, 3):
        metrics.record_metrics(
            experiment_id=experiment.pk,
            attempt=1,
            step=step,
            values={"rollout/success": step / 4, "loss/entropy": 1 / step},
            policy_version=step,
        )
    expect(
        page.locator("#chart-success-and-reward .js-plotly-plot, #chart-success-and-reward .plot-container")
    ).to_be_visible()
    points = "() => document.getElementById('chart-entropy')?.data?.[0].x.length === 3"
    page.wait_for_function(points)

    alarm = Alarm(
        name="grad_norm", step=3, value=48.2, limit=10, message="Norm too large", remedy="Halve the rate"
    )
    alarms.record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=3, alarms=(alarm,)))
    expect(page.locator(".alarm")).to_contain_text("Halve the rate")


def test_alarms_clear_by_themselves_and_stop_shouting_when_acknowledged(
    sign_in: SignIn, people: People, experiment: Experiment
):
    def step(number: int, *names: str) -> None:
        fired = tuple(
            Alarm(name=name, step=number, value=1, limit=0.5, message=f"{name} fired", remedy="Look")
            for name in names
        )
        alarms.record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=number, alarms=fired))

    step(1, "truncation", "zero_variance")
    page = sign_in(people.operator)
    page.goto(f"/experiments/{experiment.pk}/")
    shouting = page.locator("[data-alarm=active]:visible")
    expect(shouting).to_have_count(2)
    for number in (2, 3):
        step(number, "zero_variance")
    expect(shouting).to_have_count(1)
    page.locator(".more-alarms summary").click()
    expect(page.locator("#alarm-truncation")).to_contain_text("Fired at step 1, cleared at step 3")

    page.get_by_role("button", name="Acknowledge").click()
    expect(shouting).to_have_count(0)
    step(4, "zero_variance")
    expect(page.locator("#alarm-zero_variance")).to_contain_text("Since step 1, last at step 4")
    expect(page.locator("#alarm-zero_variance")).to_contain_text(f"by {people.operator.username}")
    expect(shouting).to_have_count(0)
    step(8)
    step(9, "zero_variance")
    expect(shouting).to_contain_text("Since step 9")


def test_a_tile_changes_its_words_and_its_picture_at_one_moment(
    sign_in: SignIn, people: People, experiment: Experiment, running: Trajectory
):
    page = sign_in(people.viewer)
    held: list[Route] = []
    page.goto(f"/experiments/{experiment.pk}/")
    old = page.locator(f'[data-trajectory="{running.pk}"]')
    expect(old).to_contain_text(running.task.instruction)

    trajectory_services.move_trajectory(trajectory=running, to=TrajectoryStatus.EVALUATING)
    trajectory_services.end_trajectory(
        trajectory_id=running.pk, status=TrajectoryStatus.TERMINATED, score=1.0
    )
    group = make_group(experiment=experiment, size=1, purpose=Purpose.TRAIN)
    successor = make_trajectory(group=group, status="running", turns=0)
    sha = make_frame(people.team, 3)
    page.route(f"**/frames/{sha}.thumb.jpg", lambda route: held.append(route))
    with transaction.atomic():  # the wall sees it with its first screen, not before
        Trajectory.objects.filter(pk=successor.pk).update(desktop=running.desktop)
        assert take_turn(successor, 0, Action(kind=ActionKind.WAIT, seconds=1)) == sha

    for _ in range(450):  # the part has come, and asks for the picture
        if held:
            break
        page.wait_for_timeout(100)
    expect(page.locator(".tile img")).to_have_attribute("src", f"/frames/{running.last_frame}.thumb.jpg")
    expect(page.locator(".tile")).to_contain_text(running.task.instruction)
    held.pop().continue_()
    expect(page.locator(".tile img")).to_have_attribute("src", f"/frames/{sha}.thumb.jpg")
    expect(page.locator(".tile")).to_contain_text(group.task.instruction)
