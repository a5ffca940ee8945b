"""Event streams of an experiment's pages."""

from webapp.experiments.models import (
    Experiment,
)


def experiment_stream(experiment_id: int) -> str:
    """Name of the experiment's event stream."""
    return f"experiment.{experiment_id}"


def source_of_evaluation(experiment_id: int) -> int | None:
    """The experiment whose checkpoint this one evaluates on demand; None for all others."""
    rows = Experiment.objects.filter(pk=experiment_id)
    return rows.values_list("evaluates__experiment_id", flat=True).first()
