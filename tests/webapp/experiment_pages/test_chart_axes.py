"""Charts of GRPO and of the SFT stage count steps of their own."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment
from webapp.analysis.series.metric_series import evaluation_points
from webapp.experiment_pages.chart_markers import markers_of
from webapp.experiments.models import Experiment, Stage
from webapp.experiments.queries.evaluations import all_evaluations


@pytest.mark.django_db
def test_an_evaluation_of_the_sft_stage_is_not_on_the_axis_of_grpo() -> None:
    experiment = make_experiment()
    for name, step in (("sft", 400), ("before", 0), ("during", 20)):
        make_evaluation(experiment, name=name, step=step, won=1, total=4)
    assert_axes(experiment, points=[0, 20], markers=[("sft", 400), ("grpo", 0), ("grpo", 20)])


@pytest.mark.django_db
def test_an_evaluation_on_demand_is_on_the_axis_of_its_checkpoint() -> None:
    experiment, now = make_experiment(), timezone.now()
    grpo = Stage.objects.create(experiment=experiment, name="grpo", position=1)
    saved = [("sft", 300, 90), ("grpo", 5, 10)]
    for name, step, minutes in saved:
        checkpoint = experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{name}")
        experiment.checkpoints.filter(pk=checkpoint.pk).update(created_at=now - timedelta(minutes=minutes))
        asked = make_experiment(team=experiment.team, evaluates=checkpoint)
        evaluation = make_evaluation(asked, won=1, total=4)
        assert evaluation.checkpoint == checkpoint
        assert [point["step"] for point in evaluation_points(all_evaluations(asked))] == [step]
    Stage.objects.filter(pk=grpo.pk).update(started_at=now - timedelta(hours=1))
    assert_axes(experiment, points=[5], markers=[("sft", 300), ("grpo", 5)])
    Stage.objects.filter(pk=grpo.pk).update(started_at=None)  # the run is still in its SFT
    assert_axes(experiment, points=[], markers=[("sft", 300), ("sft", 5)])


def assert_axes(experiment: Experiment, *, points: list[int], markers: list[tuple[str, int]]) -> None:
    found = all_evaluations(experiment)
    assert [point["step"] for point in evaluation_points(found)] == points
    of_evaluations = [mark for mark in markers_of(experiment, found, {}) if mark["kind"] == "evaluation"]
    assert [(mark["stage"], mark["step"]) for mark in of_evaluations] == markers
