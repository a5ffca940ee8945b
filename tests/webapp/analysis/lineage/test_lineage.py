"""The family of an experiment: edges, what changed at each, and which metrics moved by more than chance."""

import random

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from training.contracts.config import ExperimentConfig
from training.statistics.chance import false_discovery_bound, welch_test
from training.statistics.student_t import t_975, t_p
from webapp.accounts.models import Team
from webapp.analysis.lineage.family_tree import (
    MAX_NODES,
    Edge,
    around,
    edges_of,
    family_of,
)
from webapp.analysis.lineage.ledger import LineageRow, lineage_of
from webapp.analysis.lineage.metric_moves import SERIES
from webapp.experiments.models import Experiment, MetricPoint


def config(**optimiser: object) -> dict:
    values = ExperimentConfig().model_dump(mode="json")
    values["optimiser"] |= optimiser
    return values


def row_of(experiment: Experiment) -> LineageRow:
    return next(row for row in lineage_of(experiment).rows if row.experiment == experiment)


@pytest.fixture
def team(db: None) -> Team:
    return make_team()


def test_clones_and_continuations_form_a_tree(team: Team) -> None:
    first = make_experiment(team=team)
    first.checkpoints.create(step=40, policy_version=4, path="/runs/1/step-40")
    clone = make_experiment(team=team, cloned_from=first)
    values = config()
    values["model"]["path"] = "/runs/1/step-40/model"
    continued = make_experiment(team=team, cloned_from=first, config=values)
    alone = make_experiment(team=team)
    edges = edges_of(team.pk)
    assert edges == [
        Edge(clone.pk, first.pk, is_clone=True),
        Edge(continued.pk, first.pk, is_clone=True, checkpoint=(first.pk, 40)),
    ]
    assert [(node.pk, node.depth) for node in family_of(clone.pk, edges)] == [
        (first.pk, 0), (clone.pk, 1), (continued.pk, 1)
    ]  # fmt: skip
    assert [node.pk for node in family_of(alone.pk, edges)] == [alone.pk]


def test_a_long_family_is_shown_around_the_experiment() -> None:
    edges = [Edge(pk, pk - 1, is_clone=True) for pk in range(2, 200)]
    shown = around(family_of(150, edges), 150)
    assert len(shown) == MAX_NODES
    assert {149, 150, 151} <= {node.pk for node in shown}
    edges = [Edge(pk, 1, is_clone=True) for pk in range(2, 200)]
    assert {1, 150} <= {node.pk for node in around(family_of(150, edges), 150)}


def test_an_edge_says_what_changed_and_resumes_are_listed(team: Team) -> None:
    first = make_experiment(team=team)
    clone = make_experiment(team=team, cloned_from=first, config=config(learning_rate=3e-6))
    clone.attempts.create(number=1, worker_name="gpu@h")
    clone.attempts.create(number=2, worker_name="gpu@h", resumed_step=15)
    row = row_of(clone)
    assert [(knob.path, old, new) for knob, old, new in row.changes] == [
        ("optimiser.learning_rate", "1e-06", "3e-06")
    ]
    assert row.resumes == [15]


@pytest.mark.parametrize(("won", "is_sure"), [(30, True), (12, False)])
def test_success_moved_when_mcnemars_test_says_so(team: Team, won: int, is_sure: bool) -> None:
    first = make_experiment(team=team)
    clone = make_experiment(team=team, cloned_from=first)
    make_evaluation(first, won=10, total=40, temperature=0)
    make_evaluation(clone, won=won, total=40, temperature=0)
    (move,) = row_of(clone).moves
    assert (move.name, move.is_significant) == ("Greedy held-out success", is_sure)
    assert (move.before, move.after) == (0.25, won / 40)


def end_at(experiment: Experiment, value: float) -> None:
    MetricPoint.objects.bulk_create(
        MetricPoint(experiment=experiment, name="loss/entropy", step=step, value=value if step > 18 else 9.0)
        for step in range(1, 21)
    )
    Experiment.objects.filter(pk=experiment.pk).update(step=20)


def test_series_are_judged_by_the_spread_of_seeds(team: Team) -> None:
    base = make_experiment(team=team, config=config(seed=0))
    other_seed = make_experiment(team=team, cloned_from=base, config=config(seed=1))
    faster = make_experiment(team=team, cloned_from=base, config=config(seed=0, learning_rate=1e-4))
    for experiment, value in ((base, 1.0), (other_seed, 1.1), (faster, 3.0)):
        end_at(experiment, value)
    (move,) = row_of(faster).moves
    assert (move.before, move.after, move.is_significant) == (pytest.approx(1.05), pytest.approx(3.0), False)
    assert move.basis == "one seed: chance unknown"
    again = make_experiment(team=team, cloned_from=faster, config=config(seed=1, learning_rate=1e-4))
    end_at(again, 3.2)
    (move,) = row_of(faster).moves
    assert move.is_significant
    assert move.basis == "2 and 2 seeds"
    assert row_of(other_seed).moves == []


def test_welchs_test_agrees_with_its_worked_numbers() -> None:
    # equal variances 1, n = 5 and 5: degrees 8, t = 2.306, standard error sqrt(2.5 / 5 * 2) = 1
    test = welch_test([1, 2, 3, 4, 5], [3, 4, 5, 6, 7])
    assert test
    assert (test.low, test.high) == pytest.approx((2 - 2.306, 2 + 2.306), abs=1e-4)
    assert test.p == pytest.approx(0.0805, abs=1e-4)
    assert welch_test([1], [1, 2]) is None
    assert [welch_test([1, 1], [value, value]).p for value in (1, 2)] == [1, 0]


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (60, 2.000)]
)
def test_p_agrees_with_the_quantiles_of_students_t(degrees: int, t: float) -> None:
    # NIST/SEMATECH e-Handbook, 1.3.6.7.2: 97.5 % quantiles, so 5 % lie outside
    assert t_p(t, degrees) == t_p(-t, degrees) == pytest.approx(0.05, abs=1e-4)
    assert t_p(0, degrees) == 1


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.7062), (5, 2.5706), (19, 2.0930), (20, 2.0860), (30, 2.0423), (120, 1.9799)]
)
def test_an_interval_is_as_wide_as_its_degrees_of_freedom_say(degrees: int, t: float) -> None:
    # NIST/SEMATECH e-Handbook, 1.3.6.7.2
    assert t_975(degrees) == pytest.approx(t, abs=1e-4)
    assert t_975(5000) == pytest.approx(1.9604, abs=1e-4)


def test_interval_and_p_never_disagree() -> None:
    rng = random.Random(29)
    judged = set()
    for _ in range(400):
        before = [rng.gauss(0, 1) for _ in range(rng.randint(2, 60))]
        after = [rng.gauss(0.5, 1) for _ in range(rng.randint(2, 60))]
        test = welch_test(before, after)
        assert test
        is_apart = test.low > 0 or test.high < 0
        assert is_apart == (test.p < 0.05), (len(before), len(after), test)
        judged.add(is_apart)
    assert judged == {True, False}


def test_many_tests_are_judged_together() -> None:
    # the worked example of Benjamini and Hochberg 1995, section 3.2: 15 tests, four findings at 5 %
    p_values = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
        0.6528, 0.7590, 1.0,
    ]  # fmt: skip
    assert false_discovery_bound(p_values, 0.05) == 0.0095
    assert false_discovery_bound([0.03, 0.6], 0.05) == -1
    assert false_discovery_bound([], 0.05) == -1


def test_one_of_many_metrics_that_chance_moved_is_no_finding(team: Team, client: Client) -> None:
    """Alone its test would call it one: p = 0.02 among five metrics of which nothing moved four."""
    base, clone = (
        [
            make_experiment(team=team, cloned_from=origin, config=config(seed=seed, learning_rate=rate))
            for seed in range(3)
        ]
        for origin, rate in ((None, 1e-6), (None, 2e-6))
    )
    Experiment.objects.filter(pk__in=[one.pk for one in base[1:] + clone]).update(cloned_from=base[0])
    for index, (first, last) in enumerate(zip(base, clone, strict=True)):
        for name in SERIES:
            moved = 0.3 if name == "loss/entropy" else 0.01
            for one, shift in ((first, 0.0), (last, moved)):
                MetricPoint.objects.create(experiment=one, name=name, step=1, value=1 + 0.1 * index + shift)
    Experiment.objects.filter(team=team).update(step=1)
    moves = row_of(clone[0]).moves
    by_name = {move.name: move for move in moves}
    lucky = by_name["loss/entropy"]
    assert lucky.p == pytest.approx(0.0213, abs=1e-3)
    assert lucky.low > 0, "its own interval does not hold 0"
    assert not any(move.is_significant for move in moves)
    client.force_login(make_user("viewer", team=team))
    page = client.get(f"/experiments/{clone[0].pk}/parts/lineage/").content.decode()
    assert "Judged together by Benjamini and Hochberg" in page
