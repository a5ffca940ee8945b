"""Charts of GRPO and of the SFT stage count steps of their own."""

import pytest

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment
from webapp.analysis.series.metric_series import evaluation_points
from webapp.experiment_pages.chart_markers import markers_of


@pytest.mark.django_db
def test_an_evaluation_of_the_sft_stage_is_not_on_the_axis_of_grpo() -> None:
    experiment = make_experiment()
    found = [
        make_evaluation(experiment, name=name, step=step, won=1, total=4)
        for name, step in (("sft", 400), ("before", 0), ("during", 20))
    ]
    assert [point["step"] for point in evaluation_points(found, experiment)] == [0, 20]
    markers = markers_of(experiment, found, {})
    assert [(marker["stage"], marker["step"]) for marker in markers] == [
        ("sft", 400),
        ("grpo", 0),
        ("grpo", 20),
    ]
