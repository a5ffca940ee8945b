"""A trajectory that cannot be scored or rewarded leaves its group: it is no zero, and no reward."""

import pytest

from testing.factories import make_experiment
from tests.workers.env.test_branch_episodes import machine, oracle_task, run_all  # noqa: F401 (fixture)
from training.contracts.types import Purpose, Source
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.tasks.errors import EvaluatorError, TaskErrorKind

pytestmark = pytest.mark.django_db(transaction=True)


def run_with(expression: str = "score", count: str = "once"):
    """A group of one place, each try of which is run; its trajectories."""
    term = {"term": "mine", "weight": 1.0, "expression": expression, "count": count}
    rewards = {"preset": "mine.v1", "definition": {"terms": [term]}}
    config = {"desktops": {"provider": "qemu", "retries": 1}, "rewards": rewards}
    experiment = make_experiment(config=config)
    request = GroupSpec(task=oracle_task(), size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment)
    return list(run_all(group).trajectories.order_by("pk"))


def test_a_reward_that_has_a_value_is_one(machine):  # noqa: F811
    (row,) = run_with("1.0 / score")
    assert (row.status, row.score, row.reward) == ("terminated", 1.0, 1.0)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("1.0 / (score - 1.0)", "once"),
        ("math.sqrt(0.0 - score)", "once"),
        ("1.0 / num_milestones", "once"),
        ("(score - 1.0) / (score - 1.0)", "once"),
    ],
)
def test_an_expression_without_a_value_empties_the_place(machine, expression, count):  # noqa: F811
    rows = run_with(expression, count)
    assert [(row.status, row.error_kind, row.score, row.reward) for row in rows] == [
        ("errored", "reward", None, None)
    ] * 2
    assert "mine: " in rows[0].error
    assert "which is no reward" in rows[0].error


def test_an_evaluator_that_cannot_tell_empties_the_place(machine, monkeypatch):  # noqa: F811
    def cannot_tell(*_):
        raise EvaluatorError(TaskErrorKind.TASK, "metric check_json: check_json has no method 'in'")

    monkeypatch.setattr(machine, "evaluate", cannot_tell)
    rows = run_with()
    assert {(row.status, row.error_kind, row.score, row.reward) for row in rows} == {
        ("errored", "evaluator", None, None)
    }


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 1.5, -0.1])
def test_a_score_that_is_none_empties_the_place(machine, monkeypatch, score):  # noqa: F811
    monkeypatch.setattr(machine, "evaluate", lambda *_: score)
    rows = run_with()
    assert {(row.status, row.error_kind, row.score, row.reward) for row in rows} == {
        ("errored", "evaluator", None, None)
    }
