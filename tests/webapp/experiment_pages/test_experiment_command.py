"""`manage.py experiment`: what programs read of an experiment."""

import io
import json

import pytest
from django.core.management import call_command

from testing.factories import make_experiment
from webapp.experiments.models import CheckpointRecord, MetricPoint

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> dict:
    output = io.StringIO()
    call_command("experiment", *arguments, stdout=output)
    return json.loads(output.getvalue())


def test_asked_for_series_come_in_the_order_of_their_steps():
    experiment = make_experiment()
    for step, value in ((2, 0.5), (1, 0.25)):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=value)
    MetricPoint.objects.create(experiment=experiment, name="loss/entropy", step=1, value=9.0)
    values = said(str(experiment.pk), "--metrics", "rollout/success", "never/reported")
    assert values["metrics"] == {"rollout/success": [[1, 0.25], [2, 0.5]], "never/reported": []}
    assert "metrics" not in said(str(experiment.pk))


def test_checkpoints_that_are_still_there_are_listed():
    experiment = make_experiment()
    for step, gone in ((5, "2026-01-01T00:00:00Z"), (10, None)):
        CheckpointRecord.objects.create(
            experiment=experiment, step=step, policy_version=step, path=f"/c/{step}", deleted_at=gone
        )
    assert [row["path"] for row in said(str(experiment.pk))["checkpoints"]] == ["/c/10"]


def test_watching_ends_with_the_experiment():
    experiment = make_experiment(status="finished")
    values = said(str(experiment.pk), "--watch", "0.01")
    assert values["status"] == "finished"
