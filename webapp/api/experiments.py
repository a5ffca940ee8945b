"""/experiments: list, launch, look at, steer."""

import math
from collections import defaultdict
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from ninja import Query, Router, Status

from training.contracts.config import ExperimentConfig, parse_config, read_yaml
from training.contracts.outcome import SuccessRule
from training.planning.presets import load_preset
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, Team
from webapp.analysis.evaluations.success_pairs import change_of_run, pairs_of
from webapp.analysis.verdict.sentence import described
from webapp.api.errors import Conflict
from webapp.api.experiment_schemas import (
    ExperimentChanges,
    ExperimentDetail,
    ExperimentIn,
    ExperimentPage,
    ExperimentRow,
    MetricsPage,
    PreflightOut,
)
from webapp.api.paging import page_of
from webapp.experiments.access import get_experiment
from webapp.experiments.models import Experiment, ExperimentStatus, MetricPoint
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.queries.reward_presets import with_saved_terms
from webapp.experiments.services import experiments
from webapp.experiments.services.experiments import archive_experiments
from webapp.launch.preflight.run_preflight import run_preflight
from webapp.lib.request_values import BadValue, whole_number
from webapp.lib.tags import with_tag
from webapp.replay.services import experiment_deletion

router = Router(tags=["experiments"])
MAX_POINTS = 20_000


MAX_STEP = 2**31 - 1


def metrics_page(rows: QuerySet[MetricPoint], after: str, limit: int) -> dict[str, Any]:
    """{"series": name -> {"steps", "values"}, "next": cursor or None}; series by name, each by step.

    A series that a page ends in goes on in the next one. Raises BadValue for a cursor that is none.
    """
    if after:
        rows = rows.filter(_beyond(after))
    columns = ("name", "step", "value")
    points = list(rows.order_by("name", "step").values_list(*columns)[: limit + 1])
    series: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {"steps": [], "values": []})
    for name, step, value in points[:limit]:
        series[name]["steps"].append(step)
        series[name]["values"].append(value if math.isfinite(value) else None)
    last = points[limit - 1] if len(points) > limit else None
    return {"series": series, "next": f"{last[1]}:{last[0]}" if last else None}


def _beyond(cursor: str) -> Q:
    """The points behind "STEP:NAME"."""
    step, colon, name = cursor.partition(":")
    if not colon:
        raise BadValue("after", "not a cursor; take `next` of the page before")
    number = whole_number(step, "after", high=MAX_STEP)
    # The first condition is implied; it is what lets an index scan start in the right place.
    return Q(name__gte=name) & (Q(name__gt=name) | Q(step__gt=number))


@router.get("", response=ExperimentPage, operation_id="list_experiments")
def list_experiments(
    request: MemberRequest,
    status: ExperimentStatus | None = None,
    tag: str = "",
    archived: bool | None = None,
    after: str = "",
    limit: int = 50,
) -> Any:
    """Experiments of the current team, newest first; archived ones too unless `archived` says which."""
    rows = Experiment.objects.filter(team=member(request).team).select_related("team").defer("config")
    if status:
        rows = rows.filter(status=status)
    if tag:
        rows = rows.filter(with_tag(tag))
    if archived is not None:
        rows = rows.filter(archived_at__isnull=not archived)
    return page_of(rows, after, limit)


@router.post("", response={201: ExperimentDetail}, operation_id="launch_experiment")
def launch_experiment(request: MemberRequest, body: ExperimentIn) -> Any:
    """Queue an experiment. A config that cannot run is refused with the field's name."""
    team = member(request, Role.OPERATOR).team
    experiment = experiments.queue_experiment(
        team=team,
        owner=request.user,
        name=body.name,
        preset=body.preset,
        config=config_of(body, team),
        priority=body.priority,
        note=body.note,
    )
    return Status(201, _detail(experiment))


@router.post("/preflight", response=PreflightOut, operation_id="check_experiment")
def check_experiment(request: MemberRequest, body: ExperimentIn) -> Any:
    """What the launch page's panel says of it; queues nothing."""
    team = member(request, Role.OPERATOR).team
    return run_preflight(config_of(body, team), team=team, preset=body.preset, priority=body.priority)


@router.get("/{int:pk}", response=ExperimentDetail, operation_id="show_experiment")
def show_experiment(request: MemberRequest, pk: int) -> Any:
    """One experiment with its stages, evaluations and config."""
    return _detail(get_experiment(request, pk))


@router.patch("/{int:pk}", response=ExperimentDetail, operation_id="edit_experiment")
def edit_experiment(request: MemberRequest, pk: int, body: ExperimentChanges) -> Any:
    """Rename, tag, annotate or archive; what is left out stays as it is."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    experiments.edit_experiment(
        experiment=experiment, user=request.user, name=body.name, note=body.note, tags=body.tags
    )
    if body.archived is not None:
        is_archived = experiment.archived_at is not None
        done = archive_experiments(experiments=[experiment], on=body.archived, user=request.user)
        if not done and is_archived is not body.archived:
            raise Conflict(f"Experiment #{pk} is {experiment.status}; only ended ones are archived.")
    return _detail(get_experiment(request, pk))


@router.delete("/{int:pk}", response={204: None}, operation_id="delete_experiment")
def delete_experiment(request: MemberRequest, pk: int) -> Any:
    """Delete an ended one; replay entries with a verdict and demonstrations stay with their groups."""
    try:
        experiment = get_experiment(request, pk, Role.OPERATOR)
        experiment_deletion.delete_experiment(experiment=experiment, user=request.user)
    except experiment_deletion.DeletionRefused as refusal:
        raise Conflict(f"Experiment #{pk} was not deleted: {refusal}.") from refusal
    return HttpResponse(status=204)


@router.get("/{int:pk}/metrics", response=MetricsPage, operation_id="show_metrics")
def show_metrics(
    request: MemberRequest,
    pk: int,
    name: list[str] = Query([]),  # noqa: B008
    from_step: int = Query(0, ge=0, le=MAX_STEP),
    to_step: int = Query(MAX_STEP, ge=0, le=MAX_STEP),
    after: str = "",
    limit: int = Query(MAX_POINTS, ge=1, le=MAX_POINTS),
) -> Any:
    """Every point of the series named (of all when no `name` is given), `limit` points at a time: series by
    name, each by step. `next` is the `after` of the next page, in which a series may go on."""
    rows = get_experiment(request, pk).metrics.filter(step__range=(from_step, to_step))
    if name:
        rows = rows.filter(name__in=name)
    return metrics_page(rows, after, limit)


@router.post("/{int:pk}/cancel", response=ExperimentDetail, operation_id="cancel_experiment")
def cancel_experiment(request: MemberRequest, pk: int) -> Any:
    """Stop it: at once when it waits, at the next safe point when it runs."""
    return _steer(request, pk, experiments.request_cancel)


@router.post("/{int:pk}/pause", response=ExperimentDetail, operation_id="pause_experiment")
def pause_experiment(request: MemberRequest, pk: int) -> Any:
    """Finish the step, save a checkpoint, give the gpu worker back."""
    return _steer(request, pk, experiments.request_pause)


@router.post("/{int:pk}/resume", response=ExperimentDetail, operation_id="resume_experiment")
def resume_experiment(request: MemberRequest, pk: int) -> Any:
    """Queue a paused or failed experiment again; it goes on from its last checkpoint."""
    return _steer(request, pk, experiments.resume_experiment)


def _steer(request: MemberRequest, pk: int, wish: Any) -> dict[str, Any]:
    experiment = get_experiment(request, pk, Role.OPERATOR)
    if not wish(experiment=experiment, user=request.user):
        raise Conflict(f"Experiment #{pk} is {experiment.status}; that cannot be done to it now.")
    return _detail(get_experiment(request, pk))


def config_of(body: ExperimentIn, team: Team) -> ExperimentConfig:
    """The whole config that a body of `team` asks for; raises ConfigError for one that cannot run."""
    if body.yaml:
        return parse_config(with_saved_terms(read_yaml(body.yaml), team))
    base: dict[str, Any] = {}
    if body.preset:
        preset = load_preset(body.preset)
        if preset is None:
            raise Http404(f"preset: there is no {body.preset}; see /api/v1/config/presets")
        base = preset.config.model_dump(mode="json")
    return parse_config(with_saved_terms(_merged(base, body.config), team))


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with the nested `changes` applied."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _detail(experiment: Experiment) -> dict[str, Any]:
    row = ExperimentRow.from_orm(experiment).model_dump()
    evaluations = list(experiment.evaluations.all())
    return row | {
        "team.name": experiment.team.name,
        "note": experiment.note,
        "config": experiment.config,
        "stages": list(experiment.stages.all()),
        "evaluations": evaluations,
        "success_change": change_of_run(pairs_of(evaluations)),
        "success_change_of_state": change_of_run(pairs_of(evaluations), SuccessRule.STATE),
        "verdict": described(experiment),
        "waiting_because": why_waiting(experiment),
    }
