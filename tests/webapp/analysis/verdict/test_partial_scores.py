"""Runs whose evaluator grades: scores that rise long before any task is solved, and those that fall."""

from collections.abc import Callable

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from testing.page_text import page_text
from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.analysis.verdict.sentence import described
from webapp.experiments.models import Evaluation, Experiment, MetricPoint
from webapp.experiments.services.alarms import record_alarms

pytestmark = pytest.mark.django_db
NUM_TASKS = 20


def graded(experiment: Experiment, name: str, step: int, score: Callable[[int], float]) -> Evaluation:
    """Greedy evaluation of one trajectory a task."""
    scores = {f"form8-{number}": score(number) for number in range(NUM_TASKS)}
    return make_evaluation(
        experiment,
        name=name,
        step=step,
        tasks={task: (int(one == 1), 1) for task, one in scores.items()},
        temperature=0.0,
        mean_score=sum(scores.values()) / NUM_TASKS,
        score_by_task=scores,
    )


def run(before: Callable[[int], float], after: Callable[[int], float]) -> Experiment:
    experiment = make_experiment(team=make_team(), status="finished", started_at="2026-11-28T09:00Z")
    graded(experiment, "before", 0, before)
    graded(experiment, "after", 40, after)
    return experiment


def test_scores_that_rise_without_a_full_one_are_no_flat_run(client: Client) -> None:
    experiment = run(lambda number: number % 3 / 8, lambda number: (4 + number % 2) / 8)
    alarm = Alarm(name="parse_collapse", step=1, value=0.6, limit=0.3, message="!", remedy="Look")
    record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=1, alarms=(alarm,)))
    found = described(experiment)
    assert found is not None
    assert found["outcome"] == "partly"
    assert found["text"].startswith(
        "Learned in part: greedy mean score 12 % before, 56 % after (+44 points, p < 0.001, n = 20); "
        "full scores 0 % before, 0 % after."
    )
    assert found["remedy"] == {}
    client.force_login(make_user(team=experiment.team))
    assert "Learned in part" in client.get("/experiments/").content.decode()
    page = page_text(client.get(f"/experiments/{experiment.pk}/?tab=evaluations"))
    assert "score 56.3 %" in page
    assert "score 11.9 %" in page


@pytest.mark.parametrize(("left", "outcome"), [(1, "collapsed"), (4, "worse")])
def test_scores_that_fall_without_a_full_one_are_no_flat_run(left: int, outcome: str) -> None:
    found = described(run(lambda _: 6 / 8, lambda number: (left + number % 2) / 8))
    assert found is not None
    assert found["outcome"] == outcome
    assert "greedy mean score 75 % before" in found["text"]


def test_a_collapse_of_the_rollouts_is_not_shown_by_scores_that_rose() -> None:
    experiment = run(lambda _: 1 / 8, lambda number: float(number < 2) or 5 / 8)
    MetricPoint.objects.bulk_create(
        MetricPoint(experiment=experiment, name="rollout/success", step=step, value=value)
        for step, value in enumerate((0.4, 0.5, 0.45, 0.1, 0.0, 0.0, 0.02), start=1)
    )
    found = described(experiment)
    assert found is not None
    assert found["outcome"] == "collapsed"
    assert "mean score" not in found["text"]


def test_what_chance_can_do_stays_flat() -> None:
    found = described(run(lambda number: number % 3 / 8, lambda number: (number + 1) % 3 / 8))
    assert found is not None
    assert found["outcome"] == "flat"
    assert "mean score" not in found["text"]


def test_full_scores_decide_where_they_moved() -> None:
    found = described(run(lambda _: 6 / 8, lambda number: 1.0 if number < 12 else 0.0))
    assert found is not None
    assert found["outcome"] == "learned"
    assert "success 0 % before, 60 % after" in found["text"]


def test_a_score_of_all_or_nothing_is_no_grade() -> None:
    run(lambda number: float(number < 3), lambda number: float(number < 9))
    after = Evaluation.objects.get(name="after")
    assert (after.mean_score, after.is_graded, after.p_of_score) == (0.45, False, None)
    assert after.p_of_change is not None
