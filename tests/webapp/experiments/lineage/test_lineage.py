"""The family of an experiment: edges, what changed at each, and which metrics moved by more than chance."""

import pytest

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.experiments.lineage.family_tree import MAX_NODES, Edge, around, edges_of, family_of
from webapp.experiments.lineage.ledger import LineageRow, lineage_of
from webapp.experiments.lineage.metric_moves import welch_interval
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


def test_welchs_interval_agrees_with_its_worked_numbers() -> None:
    # equal variances 1, n = 5 and 5: degrees 8, t = 2.306, standard error sqrt(2.5 / 5 * 2) = 1
    low, high = welch_interval([1, 2, 3, 4, 5], [3, 4, 5, 6, 7]) or (0, 0)
    assert (low, high) == (pytest.approx(2 - 2.306), pytest.approx(2 + 2.306))
    assert welch_interval([1], [1, 2]) is None
