"""Evaluations of an experiment: its own, and those on demand."""

from django.db.models import Q

from training.contracts.stage_names import StageName
from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.queries.checkpoints import made_in_sft


def all_evaluations(experiment: Experiment) -> list[Evaluation]:
    """Its own, and those on demand of its checkpoints; each with `is_of_sft`: it counts the steps of SFT."""
    rows = Evaluation.objects.filter(Q(experiment=experiment) | Q(checkpoint__experiment=experiment))
    on_demand = ~Q(experiment=experiment) & made_in_sft("checkpoint__")
    rows = rows.annotate(is_of_sft=Q(name=StageName.SFT) | on_demand)  # type: ignore[no-redef]
    return list(rows.select_related("checkpoint").order_by("id"))


def is_on_demand(evaluation: Evaluation, experiment: Experiment) -> bool:
    """True when another experiment measured it."""
    return evaluation.experiment_id != experiment.pk
