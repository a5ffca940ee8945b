"""Evaluations of an experiment: its own, and those on demand."""

from django.db.models import Q

from webapp.experiments.models import Evaluation, Experiment


def all_evaluations(experiment: Experiment) -> list[Evaluation]:
    """Its own, and those that people asked of its checkpoints."""
    rows = Evaluation.objects.filter(Q(experiment=experiment) | Q(checkpoint__experiment=experiment))
    return list(rows.select_related("checkpoint").order_by("id"))


def is_on_demand(evaluation: Evaluation, experiment: Experiment) -> bool:
    """True when another experiment measured it."""
    return evaluation.experiment_id != experiment.pk
