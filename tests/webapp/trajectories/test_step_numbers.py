"""One number for a step: on a group, its members and the uses of a replay entry."""

import importlib

import pytest
from django.apps import apps

from testing.factories import make_experiment, make_group, make_trajectory
from training.contracts.types import Purpose

pytestmark = pytest.mark.django_db
migration = importlib.import_module("webapp.trajectories.migrations.0008_steps_from_one")


def test_train_rows_of_before_count_from_one_and_others_stay():
    experiment = make_experiment()
    rows = {
        purpose: make_group(experiment=experiment, purpose=purpose, step=2)
        for purpose in (Purpose.TRAIN, Purpose.EVALUATION, Purpose.BRANCH)
    }
    for group in rows.values():
        make_trajectory(group=group, step=2)
    rows[Purpose.BRANCH].parent = rows[Purpose.TRAIN].trajectories.get()
    rows[Purpose.BRANCH].save()
    migration.count_from_one(apps, None)
    for purpose, step in ((Purpose.TRAIN, 3), (Purpose.EVALUATION, 2), (Purpose.BRANCH, 3)):
        rows[purpose].refresh_from_db()
        assert (rows[purpose].step, rows[purpose].trajectories.get().step) == (step, step), purpose
    migration.count_from_zero(apps, None)
    rows[Purpose.BRANCH].refresh_from_db()
    assert rows[Purpose.BRANCH].step == 2
