"""/sweeps: launch, look at, steer the whole."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.experiment_schemas import ExperimentIn
from webapp.api.experiments import config_of
from webapp.experiments.sweep_plan import SearchSettings, SweepPlan
from webapp.sweeps.access import get_sweep
from webapp.sweeps.queries.summary import summary_of
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.sweeps import (
    cancel_sweep,
    launch_sweep,
    pause_sweep,
    resume_sweep,
)

router = Router(tags=["sweeps"])


class SweepIn(ExperimentIn):
    """What to launch: an experiment as for /experiments, and what is varied."""

    name: str = Field(min_length=1, max_length=100)
    axes: list[str] = Field([], max_length=8)
    """One knob each: "optimiser.learning_rate = 1e-6, 3e-6" or "... = 1e-7 .. 1e-4 log"."""
    plan: SearchSettings = SearchSettings()


class ArmOut(Schema):
    """One combination of values over its seeds."""

    number: int
    status: str
    values: dict[str, Any]
    message: str
    mean: float | None
    """Over the seeds that finished; null before one has."""
    interval: tuple[float, float] | None
    """95 %, Student's t over seeds; null with fewer than two."""
    start: float | None
    """Where the same seeds began; null where that was not measured."""
    binomial: tuple[float, float] | None
    """95 %, Wilson over all samples of the last evaluations; null for metrics that are no share of them."""
    num_samples: int
    """Trajectories behind the mean; 0 where they are not counted."""
    num_finished: int
    experiments: list[int]


class SweepOut(Schema):
    """A sweep with its arms."""

    id: int
    name: str
    preset: str
    status: str
    message: str
    plan: SweepPlan
    num_experiments: int
    best_arm: int | None
    """null while no arm has ended better than it began."""
    best_arms: list[int]
    """All that did equally well."""
    measured_otherwise: list[str]
    """What differs between what measured the seeds (engine, version, kernels ...), in sentences."""
    arms: list[ArmOut]
    created_at: datetime
    ended_at: datetime | None


@router.post("", response={201: SweepOut}, operation_id="launch_sweep")
def launch(request: MemberRequest, body: SweepIn) -> Any:
    """Begin a sweep. A plan or config that cannot run is refused with the field's name."""
    team = member(request, Role.OPERATOR).team
    config = config_of(body, team)
    axes = parse_axes("\n".join(line.replace("\n", " ") for line in body.axes), config)
    plan = SweepPlan(axes=axes, **body.plan.model_dump())
    sweep = launch_sweep(
        team=team,
        owner=request.user,
        name=body.name,
        preset=body.preset,
        config=config,
        plan=plan,
        priority=body.priority,
        note=body.note,
    )
    return Status(201, summary_of(sweep))


@router.get("/{int:pk}", response=SweepOut, operation_id="show_sweep")
def show(request: MemberRequest, pk: int) -> Any:
    """One sweep with its arms."""
    return summary_of(get_sweep(request, pk))


@router.post("/{int:pk}/cancel", response=SweepOut, operation_id="cancel_sweep")
def cancel(request: MemberRequest, pk: int) -> Any:
    """Cancel every experiment of it that has not ended."""
    return _steer(request, pk, cancel_sweep)


@router.post("/{int:pk}/pause", response=SweepOut, operation_id="pause_sweep")
def pause(request: MemberRequest, pk: int) -> Any:
    """Begin no arm any more; running experiments save a checkpoint."""
    return _steer(request, pk, pause_sweep)


@router.post("/{int:pk}/resume", response=SweepOut, operation_id="resume_sweep")
def resume(request: MemberRequest, pk: int) -> Any:
    """Go on with a paused one."""
    return _steer(request, pk, resume_sweep)


def _steer(request: MemberRequest, pk: int, wish: Callable[..., bool]) -> dict[str, Any]:
    sweep = get_sweep(request, pk, Role.OPERATOR)
    if not wish(sweep=sweep, user=request.user):
        raise Conflict(f"Sweep {pk} is {sweep.status}; that cannot be done to it now.")
    return summary_of(get_sweep(request, pk))
