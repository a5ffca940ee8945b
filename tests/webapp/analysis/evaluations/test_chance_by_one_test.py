"""Stored chances of older evaluations, computed anew: those of a sign test go."""

import importlib

import pytest
from django.apps import apps

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment
from webapp.experiments.models import Evaluation

pytestmark = pytest.mark.django_db
migration = importlib.import_module("webapp.experiments.migrations.0028_chance_by_one_test")
SHARES_BEFORE = (0, 1, 2, 3, 4, 5, 6, 7, 0, 3)
AFTER = (1, 2, 3, 4, 5, 6, 7, 8, 6, 2)


def tasks(won, at_limit=0):
    return {f"menu-{number}": (one, 8, 0, min(one, at_limit)) for number, one in enumerate(won)}


def test_it_equals_what_is_recorded_today_whatever_stood_there():
    experiment = make_experiment()
    for temperature in (0.0, 1.0):
        make_evaluation(experiment, tasks=tasks(SHARES_BEFORE, at_limit=2), temperature=temperature)
        make_evaluation(experiment, name="after", step=4, tasks=tasks(AFTER), temperature=temperature)
    right = dict(Evaluation.objects.filter(name="after").values_list("pk", "p_of_change"))
    assert all(0 < p < 0.05 for p in right.values())
    Evaluation.objects.update(p_of_change=0.5)
    migration.compute_anew(apps, None)
    assert dict(Evaluation.objects.filter(name="after").values_list("pk", "p_of_change")) == right


def test_by_the_state_where_one_of_both_was_counted_by_it_alone():
    experiment = make_experiment()
    before = make_evaluation(experiment, tasks=tasks(SHARES_BEFORE))
    ends = {"solved": None, "solved_low": None, "solved_high": None, "num_solved_at_limit": None}
    after = make_evaluation(experiment, name="after", step=4, tasks=tasks(AFTER, at_limit=8))
    migration.compute_anew(apps, None)
    after.refresh_from_db()
    fallen = after.p_of_change
    Evaluation.objects.filter(pk=before.pk).update(**ends)
    migration.compute_anew(apps, None)
    after.refresh_from_db()
    assert after.p_of_change < 0.05
    assert after.p_of_change != fallen


def test_results_without_limits_and_those_without_a_before_do_no_harm():
    experiment, lone = make_experiment(), make_experiment()
    for name, step, own in (("before", 0, SHARES_BEFORE), ("after", 4, AFTER)):
        one = make_evaluation(experiment, name=name, step=step, tasks=tasks(own))
        one.tasks.results = {key: found[:3] for key, found in one.tasks.results.items()}
        one.tasks.save()
    make_evaluation(lone, name="after", step=4, tasks=tasks(AFTER))
    Evaluation.objects.filter(experiment=experiment, name="after").update(p_of_change=None)
    migration.compute_anew(apps, None)
    assert experiment.evaluations.get(name="after").p_of_change < 0.05
    assert lone.evaluations.get().p_of_change is None
