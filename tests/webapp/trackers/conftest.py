"""An experiment to copy."""

import pytest

from testing.factories import make_experiment, make_trajectory
from webapp.experiments.models import Evaluation, EvaluationTasks, Experiment, ExperimentStatus, MetricPoint


@pytest.fixture
def experiment(db: None) -> Experiment:
    made = make_experiment(status=ExperimentStatus.FINISHED)
    for step in range(3):
        MetricPoint.objects.create(experiment=made, name="rollout/success", step=step, value=step / 4)
    # The second attempt went on from step 1 and came further.
    MetricPoint.objects.filter(experiment=made, step=2).update(value=0.9, attempt=2)
    MetricPoint.objects.create(experiment=made, name="rollout/success", step=3, value=1.0, attempt=2)
    evaluation = Evaluation.objects.create(
        experiment=made, name="after", step=3, policy_version=3, split="heldout", num_tasks=4,
        num_samples=4, num_success=3, success=0.75, low=0.3, high=0.95, temperature=0, mean_score=0.8,
    )  # fmt: skip
    episode = make_trajectory(experiment=made, turns=2, num_turns=2, score=1.0)
    outcome = {episode.task.task_id: [1, 1, episode.group_id]}
    EvaluationTasks.objects.create(evaluation=evaluation, results=outcome)
    return made
