"""Numbers of an experiment that its page reads in its first statement, together with the live cursor."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, JSONObject

from training.contracts.types import TrajectoryStatus
from webapp.experiments.lifecycle.status_changes import stream_of
from webapp.experiments.models import Attempt, CheckpointRecord, Evaluation, Experiment
from webapp.live.event_publishing import cursor_of

NO_TRAJECTORIES = {"total": 0, "scored": 0, "truncated": 0, "errored": 0, "parked": 0}


def read_with_experiment(pk: int) -> dict[str, Combinable]:
    """What `get_experiment` is asked to read also. A join of these tables would multiply their rows."""
    return {
        "cursor": cursor_of(stream_of(pk)),
        "num_evaluations": _number_of(Evaluation, "experiment")
        + _number_of(Evaluation, "checkpoint__experiment"),
        "num_checkpoints": _number_of(CheckpointRecord, "experiment"),
        "num_attempts": _number_of(Attempt, "experiment"),
        "trajectory_counts": _trajectory_counts(),
    }


def tab_counts(experiment: Experiment) -> dict[str, int]:
    """Tab -> the number on it, of an experiment that was read with them."""
    names = ("evaluations", "checkpoints", "attempts")
    return {name: number for name in names if (number := getattr(experiment, f"num_{name}"))}


def trajectory_counts(experiment: Experiment) -> dict[str, int]:
    """How many trajectories it has in all, and by how they ended; no query where they were read with it."""
    if "trajectory_counts" not in experiment.__dict__:
        rows = Experiment.objects.filter(pk=experiment.pk).annotate(counts=_trajectory_counts())
        experiment.trajectory_counts = rows.values_list("counts", flat=True).get()  # type: ignore[attr-defined]
    return experiment.trajectory_counts or NO_TRAJECTORIES  # type: ignore[attr-defined]


def _trajectory_counts() -> Subquery:
    """As one JSON object, so that the rows are read once."""
    S = TrajectoryStatus
    numbers = {
        "total": Count("pk"),
        "scored": Count("pk", filter=Q(status__in=[S.TERMINATED, S.TRUNCATED])),
        "truncated": Count("pk", filter=Q(status=S.TRUNCATED)),
        "errored": Count("pk", filter=Q(status=S.ERRORED)),
        "parked": Count("pk", filter=Q(status=S.PARKED)),
    }
    model: Any = Experiment._meta.get_field("trajectories").related_model
    rows = model.objects.filter(experiment=OuterRef("pk")).order_by().values("experiment")
    return Subquery(rows.annotate(counts=JSONObject(**numbers)).values("counts"))


def _number_of(model: type[Model], owner: str) -> Coalesce:
    """Rows of a model whose `owner` is the experiment of the outer query."""
    rows: QuerySet[Any] = model._default_manager.filter(**{owner: OuterRef("pk")}).order_by()
    return Coalesce(Subquery(rows.values(owner).annotate(number=Count("pk")).values("number")), 0)
