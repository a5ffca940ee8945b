"""Evaluations that a trainer reports."""

from django.db import transaction

from training.contracts.trainer_reports import EvaluationResult
from webapp.analysis.evaluations.graded_scores import p_of_score
from webapp.analysis.evaluations.success_pairs import p_of_change
from webapp.experiments.models import Evaluation, EvaluationTasks, Experiment
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish


@transaction.atomic
def record_evaluation(*, experiment_id: int, result: EvaluationResult) -> None:
    """Store an evaluation; the same one after a restart replaces the old."""
    experiment = Experiment.objects.select_related("evaluates").defer("config").get(pk=experiment_id)
    key = {"name", "step", "temperature"}
    evaluation, _ = Evaluation.objects.update_or_create(
        experiment_id=experiment_id,
        **result.model_dump(include=key),
        defaults=result.model_dump(exclude=key | {"by_task", "score_by_task", "eyes"})
        | {
            "checkpoint": experiment.evaluates,
            "eyes": result.eyes.model_dump(mode="json") if result.eyes else None,
        },
    )
    tasks = {"results": result.by_task, "scores": result.score_by_task}
    EvaluationTasks.objects.update_or_create(evaluation=evaluation, defaults=tasks)
    first = Evaluation.objects.filter(
        experiment_id=experiment_id, name="before", temperature=result.temperature
    ).first()
    if first and first.pk != evaluation.pk:
        evaluation.p_of_change = p_of_change(first, evaluation)
        evaluation.p_of_score = p_of_score(first, evaluation)
        evaluation.save(update_fields=["p_of_change", "p_of_score"])
    payload = result.model_dump(include=key | {"success", "solved", "num_tasks"})
    publish(experiment_stream(experiment_id), "evaluation.added", payload)
    if experiment.evaluates:
        publish(experiment_stream(experiment.evaluates.experiment_id), "evaluation.added", payload)
