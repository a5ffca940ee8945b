"""What no update used: an attempt that ended leaves groups and metrics behind the checkpoint from which the
next one went on. Their weights are gone, so they count nowhere as trained on."""

from django.db.models import Exists, OuterRef, Q

from training.contracts.types import Purpose
from webapp.experiments.models import Attempt


def lost_rows(*, attempt: str = "attempt", step: str = "step") -> Q:
    """Rows of experiments, by their columns for attempt and step, that a later attempt went back behind."""
    later = Attempt.objects.filter(experiment=OuterRef("experiment"), number__gt=OuterRef(attempt))
    return Q(Exists(later.filter(Q(resumed_step=None) | Q(resumed_step__lt=OuterRef(step)))))


def lost_groups() -> Q:
    """Groups for training among them."""
    return Q(purpose=Purpose.TRAIN) & lost_rows()


def lost_trajectories() -> Q:
    """Trajectories of such groups."""
    return Q(purpose=Purpose.TRAIN) & lost_rows(attempt="group__attempt", step="group__step")
