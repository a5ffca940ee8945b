"""The page of a sweep and its live part: few queries, however many arms."""

import re

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_group, make_team, make_user
from training.contracts.config import ExperimentConfig
from webapp.experiments.models import Experiment, ExperimentStatus, MetricPoint, Sweep
from webapp.experiments.sweep_plan import SweepPlan
from webapp.sweeps.queries.results import best_of, results_of
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.arms import advance_sweeps
from webapp.sweeps.services.sweeps import launch_sweep

pytestmark = pytest.mark.django_db
MAX_QUERIES = 10
"""Session and person included."""


def test_a_sweep_shows_its_arms_and_cost_with_few_queries(client: Client, django_assert_max_num_queries):
    """Sums over its trajectories are asked for by the cost alone: they grow with the runs."""
    team, config = make_team(), ExperimentConfig()
    client.force_login(make_user("viewer", team=team))
    axes = parse_axes("optimiser.learning_rate = 1e-6, 3e-6, 1e-5, 3e-5", config)
    plan = SweepPlan(axes=axes, num_seeds=2, metric="rollout/success")
    sweep = launch_sweep(team=team, owner=None, name="rates", config=config, plan=plan)
    for experiment in Experiment.objects.filter(arm__sweep=sweep):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=1, value=0.5)
    Experiment.objects.filter(arm__sweep=sweep).update(status=ExperimentStatus.FINISHED)
    for part in ("", "rows/"):
        client.get(f"/sweeps/{sweep.pk}/{part}")
        with django_assert_max_num_queries(MAX_QUERIES) as queries:
            page = client.get(f"/sweeps/{sweep.pk}/{part}").content.decode()
        assert not any("trajectories_trajectory" in query["sql"] for query in queries.captured_queries)
        assert page.count('id="arm-') == sweep.arms.count() > 0
    with django_assert_max_num_queries(MAX_QUERIES):
        cost = client.get(f"/sweeps/{sweep.pk}/cost/").content.decode()
    assert "GPU-hours" in cost


def launched(team, metric: str, rates: str = "1e-6, 3e-6, 1e-5", **plan) -> Sweep:
    config = ExperimentConfig()
    axes = parse_axes(f"optimiser.learning_rate = {rates}", config)
    made = SweepPlan(axes=axes, metric=metric, arms_at_once=4, **plan)
    return launch_sweep(team=team, owner=None, name="rates", config=config, plan=made)


def evaluated(sweep: Sweep, number: int, *won: tuple[int, int]) -> None:
    """(before, after) of 24 of every seed of an arm."""
    rows = Experiment.objects.filter(arm__sweep=sweep, arm__number=number).order_by("id")
    for experiment, (before, after) in zip(rows, won, strict=True):
        for name, step, solved in (("before", 0, before), ("after", 2, after)):
            make_evaluation(experiment, name=name, step=step, won=solved, total=24, temperature=0.0)
        Experiment.objects.filter(pk=experiment.pk).update(status=ExperimentStatus.FINISHED)


def notice(client: Client, sweep: Sweep) -> str:
    """What stands above the table, as plain text."""
    advance_sweeps()
    page = client.get(f"/sweeps/{sweep.pk}/rows/").content.decode()
    found = re.search(r"data-(no-)?best>(.*?)</div>\s*</div>", page, re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", found.group(2)).split()) if found else ""


def test_the_headline_names_every_best_arm_with_start_end_n_and_interval(client: Client):
    team = make_team()
    client.force_login(make_user("viewer", team=team))
    sweep = launched(team, "evaluation/greedy")
    evaluated(sweep, 1, (4, 12))
    evaluated(sweep, 2, (4, 12))
    evaluated(sweep, 3, (4, 4))
    said = notice(client, sweep)
    assert re.findall(r"Arm (\d) \(learning_rate \S+\): 16.7 % → 50.0 % , n = 24", said) == ["1", "2"]
    assert said.count("95 % interval 31.4 % to 68.6 %") == 2
    assert "Arm 3" not in said, "it did not move"
    assert "One seed each: differences may be chance" in said


def test_no_arm_is_best_that_did_not_move(client: Client):
    team = make_team()
    client.force_login(make_user("viewer", team=team))
    sweep = launched(team, "evaluation/greedy")
    evaluated(sweep, 1, (4, 4))
    evaluated(sweep, 2, (4, 3))
    evaluated(sweep, 3, (4, 4))
    said = notice(client, sweep)
    assert said.startswith("No arm ended better than it began, by evaluation/greedy:")
    assert "16.7 % → 12.5 %" in said
    assert best_of(results_of(sweep), sweep.plan) is None


def test_both_intervals_stand_beside_each_other_and_none_has_no_width():
    sweep = launched(make_team(), "evaluation/greedy", "1e-6, 3e-6", num_seeds=2)
    evaluated(sweep, 1, (4, 12), (4, 14))
    evaluated(sweep, 2, (4, 9), (4, 9))
    differ, same = results_of(sweep)
    assert differ.num_samples == same.num_samples == 48
    assert differ.binomial == pytest.approx((0.403, 0.674), abs=0.001)
    assert differ.interval is not None
    assert same.interval is None, "two seeds that agree say nothing of others"
    assert same.binomial is not None
    for low, high in (differ.binomial, differ.interval, same.binomial):
        assert 0 <= low < high <= 1, "a share lies within 0 and 1, whatever two seeds say of their spread"


def test_a_rollout_metric_counts_a_window_with_its_n_and_not_the_last_step():
    """Eight steps at 62 %, and one bad last one of eight trajectories."""
    team = make_team()
    sweep = launched(team, "rollout/success", "1e-6, 3e-6")
    experiment = Experiment.objects.get(arm__sweep=sweep, arm__number=1)
    for step, value in enumerate([0.1, 0.3, 0.4, 0.5, 0.62, 0.62, 0.62, 0.125], start=1):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=value)
        make_group(experiment=experiment, step=step, size=8, num_scored=8)
    Experiment.objects.filter(pk=experiment.pk).update(status=ExperimentStatus.FINISHED)
    arm, _ = results_of(sweep)
    assert arm.mean == pytest.approx((3 * 0.62 + 0.125) / 4)
    assert arm.start == pytest.approx(0.325)
    assert arm.num_samples == 4 * 8
