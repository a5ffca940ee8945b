"""Numbers of an experiment that its page reads in its first statement, together with the live cursor."""

from typing import Any

from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, JSONObject

from training.contracts.types import TrajectoryStatus
from webapp.analysis.series.metric_series import ROLLED_BACK
from webapp.experiments.models import (
    Attempt,
    CheckpointRecord,
    Evaluation,
    Experiment,
    ExperimentStatus,
    GpuSample,
    MetricPoint,
)
from webapp.experiments.queries.outcomes import solved_at_limit, solved_by_agent
from webapp.experiments.queries.rows_behind_resume import lost_trajectories
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import cursor_of

NO_TRAJECTORIES = dict.fromkeys(
    ("total", "scored", "solved", "solved_at_limit", "truncated", "errored", "cancelled", "parked"), 0
)


def read_with_experiment(pk: int) -> dict[str, Combinable]:
    """What `get_experiment` is asked to read also. A join of these tables would multiply their rows."""
    return {
        "cursor": cursor_of(experiment_stream(pk)),
        "num_evaluations": _number_of(Evaluation, "experiment")
        + _number_of(Evaluation, "checkpoint__experiment"),
        "num_checkpoints": _number_of(CheckpointRecord, "experiment"),
        "num_attempts": _number_of(Attempt, "experiment"),
        "num_gpu_samples": _number_of(GpuSample, "experiment"),
        "num_clones": _number_of(Experiment, "cloned_from"),
        "num_roll_backs": _number_of(MetricPoint, "experiment", name=ROLLED_BACK),
        "trajectory_counts": _counts(),
        "lost_counts": _lost_counts(),
    }


def tab_counts(experiment: Experiment) -> dict[str, int]:
    """Tab -> the number on it, of an experiment that was read with them."""
    names = ("evaluations", "checkpoints", "attempts")
    return {name: number for name in names if (number := getattr(experiment, f"num_{name}"))}


def empty_tabs(experiment: Experiment) -> set[str]:
    """Tabs that show nothing, of an experiment that was read with their numbers. What a run that goes on is
    going to fill is not empty."""
    known: Any = experiment  # with what `read_with_experiment` adds
    came_from = known.cloned_from_id or "/" in known.settings.model.path
    filled = {
        "gpus": known.num_gpu_samples,
        "cost": known.num_attempts,
        "lineage": came_from or known.num_clones or known.num_checkpoints,
    }
    if ExperimentStatus(known.status).is_final():
        number = trajectory_counts(experiment)["total"]
        filled |= {"desktops": number, "groups": number, "attempts": known.num_attempts}
        filled |= {"evaluations": known.num_evaluations, "checkpoints": known.num_checkpoints}
    return {name for name, number in filled.items() if not number}


def trajectory_counts(experiment: Experiment) -> dict[str, int]:
    """How many trajectories it has in all, and by how they ended; no query where they were read with it.
    Those that a lost attempt left behind are counted as `lost` alone."""
    if "trajectory_counts" not in experiment.__dict__:
        rows = Experiment.objects.filter(pk=experiment.pk).annotate(all=_counts(), behind=_lost_counts())
        found = rows.values_list("all", "behind").get()
        experiment.__dict__["trajectory_counts"], experiment.__dict__["lost_counts"] = found
    counts: dict[str, int] = experiment.__dict__["trajectory_counts"] or NO_TRAJECTORIES
    lost: dict[str, int] = experiment.__dict__["lost_counts"] or NO_TRAJECTORIES
    return {name: counts[name] - lost[name] for name in NO_TRAJECTORIES} | {"lost": lost["total"]}


def updates_made(experiment: Experiment, start_version: int) -> int:
    """Steps of GRPO that moved the weights: each raised the policy's version, as a roll-back does."""
    num_back = experiment.__dict__.get("num_roll_backs")
    if num_back is None:
        num_back = experiment.metrics.filter(name=ROLLED_BACK).count()
    return max(0, min(experiment.step, experiment.policy_version - start_version - num_back))


def _counts(only: Q | None = None) -> Subquery:
    """As one JSON object, so that the rows are read once."""
    model: Any = Experiment._meta.get_field("trajectories").related_model
    rows = model.objects.filter(only or Q(), experiment=OuterRef("pk")).order_by().values("experiment")
    return Subquery(rows.annotate(counts=JSONObject(**_numbers())).values("counts"))


def _lost_counts() -> Case:
    """The same of what lost attempts left behind; nothing is looked for where there was one attempt."""
    second = Attempt.objects.filter(experiment=OuterRef("pk"), number__gt=1)
    return Case(When(Exists(second), then=_counts(lost_trajectories())))


def _numbers() -> dict[str, Count]:
    S = TrajectoryStatus
    return {
        "total": Count("pk"),
        "scored": Count("pk", filter=Q(status__in=[S.TERMINATED, S.TRUNCATED])),
        "solved": Count("pk", filter=solved_by_agent()),
        "solved_at_limit": Count("pk", filter=solved_at_limit()),
        "truncated": Count("pk", filter=Q(status=S.TRUNCATED)),
        "errored": Count("pk", filter=Q(status=S.ERRORED)),
        "cancelled": Count("pk", filter=Q(status=S.CANCELLED)),
        "parked": Count("pk", filter=Q(status=S.PARKED)),
    }


def _number_of(model: type[Model], owner: str, **only: str) -> Coalesce:
    """Rows of a model whose `owner` is the experiment of the outer query."""
    rows: QuerySet[Any] = model._default_manager.filter(**{owner: OuterRef("pk")}, **only).order_by()
    return Coalesce(Subquery(rows.values(owner).annotate(number=Count("pk")).values("number")), 0)
