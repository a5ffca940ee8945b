"""The order of the queue of record."""

from django.db.models import QuerySet

from webapp.experiments.models import Experiment, ExperimentStatus

MAX_PRIORITY = 100


def waiting_experiments() -> QuerySet[Experiment]:
    """Queued experiments in queue order within each priority."""
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED)
    return waiting.order_by("-priority", "queue_order", "id")
