"""The diamonds of the success chart."""

import pytest

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment
from webapp.analysis.series.metric_series import evaluation_points


@pytest.mark.django_db
def test_an_evaluation_of_the_sft_stage_is_not_on_the_axis_of_grpo() -> None:
    experiment = make_experiment()
    found = [
        make_evaluation(experiment, name=name, step=step, won=1, total=4)
        for name, step in (("sft", 400), ("before", 0), ("during", 20))
    ]
    assert [point["step"] for point in evaluation_points(found, experiment)] == [0, 20]
