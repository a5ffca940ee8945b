"""How long a run still takes: of all its stages, at the pace of this attempt."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_attempt, make_experiment, make_team
from training.contracts.config import ExperimentConfig, parse_config
from webapp.accounts.models import Team
from webapp.experiment_pages.stage_progress import experiment_eta, stage_views
from webapp.experiments.models import Experiment, Stage
from webapp.launch.preflight.duration import stage_seconds

pytestmark = pytest.mark.django_db


def run_of(team: Team, *stages: tuple, status: str = "running", steps: int = 60) -> Experiment:
    """Stages as (name, status, done, total, seconds since its start, seconds since its end)."""
    config = parse_config({"algorithm": {"num_steps": steps}}).model_dump(mode="json")
    experiment = make_experiment(team=team, status=status, preset="first-desk", config=config)
    now = timezone.now()
    for position, (name, state, done, total, start, end) in enumerate(stages):
        Stage.objects.create(
            experiment=experiment,
            name=name,
            position=position,
            status=state,
            done=done,
            total=total,
            started_at=now - timedelta(seconds=start) if start else None,
            ended_at=now - timedelta(seconds=end) if end else None,
        )
    return experiment


def eta(experiment: Experiment) -> float | None:
    return experiment_eta(experiment, stage_views(experiment))


def test_time_left_counts_the_grpo_that_has_not_begun():
    """60 steps took 600 s in an earlier run: an evaluation of a minute, half done, is not the whole run."""
    team = make_team()
    run_of(team, ("grpo", "finished", 60, 60, 700, 100), status="finished")
    experiment = run_of(
        team,
        ("evaluation-before", "running", 72, 144, 30, None),
        ("grpo", "pending", 0, 0, None, None),
        ("evaluation-after", "pending", 0, 0, None, None),
    )
    formula = stage_seconds(experiment.settings)
    after = 600 / formula["grpo"] * formula["evaluation-after"]
    assert eta(experiment) == pytest.approx(30 + 600 + after, rel=0.05)


def test_an_earlier_run_of_other_length_tells_the_pace():
    team = make_team()
    run_of(team, ("grpo", "finished", 6, 6, 80, 20), status="finished", steps=6)
    experiment = run_of(team, ("grpo", "pending", 0, 0, None, None), steps=60)
    assert eta(experiment) == pytest.approx(600, rel=0.1)


def test_without_an_earlier_run_the_first_evaluation_tells_the_pace():
    config = ExperimentConfig()
    took = 3 * stage_seconds(config, turns_used=1.0)["evaluation-before"]
    experiment = run_of(
        make_team(),
        ("evaluation-before", "finished", 144, 144, took + 1, 1),
        ("grpo", "pending", 0, 0, None, None),
        ("evaluation-after", "pending", 0, 0, None, None),
    )
    grpo = stage_seconds(experiment.settings)["grpo"]
    assert eta(experiment) == pytest.approx(3 * grpo + took, rel=0.05)


def test_while_grpo_runs_the_evaluation_to_come_takes_as_long_as_the_first():
    experiment = run_of(
        make_team(),
        ("evaluation-before", "finished", 144, 144, 460, 400),
        ("grpo", "running", 40, 60, 400, None),
        ("evaluation-after", "pending", 0, 0, None, None),
    )
    assert eta(experiment) == pytest.approx(200 + 60, rel=0.02)


def test_a_night_between_two_attempts_is_not_the_pace():
    """20 steps, a pause of ten hours, and 10 more in 100 s: 30 are left."""
    experiment = run_of(make_team(), ("grpo", "running", 30, 60, 36_300, None))
    make_attempt(experiment, number=1)
    resumed = make_attempt(experiment, number=2, resumed_step=20)
    type(resumed).objects.filter(pk=resumed.pk).update(started_at=timezone.now() - timedelta(seconds=100))
    assert eta(experiment) == pytest.approx(300, rel=0.02)


def test_what_a_lost_attempt_did_is_not_the_pace_of_the_next_one():
    """One of three steps was made; the next attempt has begun and loads its model."""
    experiment = run_of(make_team(), ("grpo", "running", 1, 3, 60, None), status="starting")
    make_attempt(experiment, number=1)
    make_attempt(experiment, number=2, resumed_step=0)
    (view,) = stage_views(experiment)
    assert view.eta is None
    assert eta(experiment) is None


def test_before_anything_is_measured_no_time_is_named():
    assert eta(run_of(make_team(), ("grpo", "running", 0, 60, 1, None))) is None
    assert eta(run_of(make_team(), ("evaluation-before", "running", 0, 20, 1, None))) is None
    one = ("evaluation-before", "running", 10, 20, 30, None)
    assert eta(run_of(make_team(), one)) == pytest.approx(30, rel=0.05)
    assert eta(run_of(make_team(), one, ("grpo", "pending", 0, 0, None, None))) is None


def test_without_a_first_evaluation_the_last_is_as_slow_as_grpo():
    experiment = run_of(
        make_team(),
        ("grpo", "running", 30, 60, 300, None),
        ("evaluation-after", "pending", 0, 0, None, None),
    )
    formula = stage_seconds(experiment.settings)
    assert eta(experiment) == pytest.approx(
        300 + 600 / formula["grpo"] * formula["evaluation-after"], rel=0.02
    )


@pytest.mark.parametrize("status", ["queued", "finished", "failed", "paused", "cancelled"])
def test_what_does_not_run_has_no_time_left(status: str):
    assert eta(run_of(make_team(), ("grpo", "running", 30, 60, 100, None), status=status)) is None
