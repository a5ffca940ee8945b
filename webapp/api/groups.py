"""/groups, comparisons and frames: what is read beside single trajectories."""

from datetime import datetime
from typing import Any, Literal

from django.http import Http404, HttpResponse
from ninja import Field, Query, Router, Schema

from webapp.accounts.access import MemberRequest, member, memberships
from webapp.analysis.evaluations.success_pairs import SuccessPair, task_outcomes
from webapp.api.binary import binary_answer
from webapp.api.experiment_schemas import EvaluationOut, PairedChangeOut
from webapp.api.paging import Page, page_of
from webapp.api.trajectory_schemas import TrajectoryRow
from webapp.experiment_pages import comparison, experiment_table
from webapp.experiments.access import get_experiment
from webapp.experiments.models import Experiment
from webapp.lib.request_values import MAX_WHOLE, BadValue
from webapp.trajectories.access import get_group
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.frame_files.names import SHA256
from webapp.trajectories.models import Frame, Group
from webapp.trajectories.services.frames import VARIANTS

router = Router(tags=["trajectories"])


class GroupRow(Schema):
    """Sibling trajectories of one task."""

    id: int
    experiment_id: int | None
    task_id: str = Field(alias="task.task_id")
    instruction: str = Field(alias="task.instruction")
    family: str = Field(alias="task.family")
    purpose: str
    source: str
    step: int
    size: int
    temperature: float
    num_final: int
    num_scored: int
    reward_mean: float | None
    reward_std: float | None
    is_cancelled: bool
    parent_id: int | None
    """Of a branch: the trajectory that it was continued from."""
    branch_turn: int | None
    created_at: datetime
    finished_at: datetime | None


class GroupDetail(Schema):
    """A group with its members, re-run ones too."""

    group: GroupRow
    members: list[TrajectoryRow]


class GroupPage(Page[GroupRow]):
    """Newest first; `next` is the `after` of the next page."""


class ComparedRun(Schema):
    """One of the experiments compared."""

    id: int
    name: str
    status: str
    sampled: EvaluationOut | None
    """Its newest evaluation."""
    greedy: EvaluationOut | None
    sampled_against_first: PairedChangeOut | None
    greedy_against_first: PairedChangeOut | None


class DifferenceOut(Schema):
    """A knob that is not the same in all."""

    path: str
    values: list[str]
    """In the order of `runs`."""


class ComparisonOut(Schema):
    """Experiments side by side."""

    runs: list[ComparedRun]
    differences: list[DifferenceOut]
    warnings: list[str]
    """Why their success must not be compared."""


@router.get("/experiments/{int:pk}/groups", response=GroupPage, operation_id="list_groups")
def list_groups(request: MemberRequest, pk: int, after: str = "", limit: int = 50) -> Any:
    """Groups of an experiment, newest first."""
    rows = Group.objects.filter(experiment=get_experiment(request, pk)).select_related("task")
    return page_of(rows.defer("task__spec"), after, limit)


@router.get("/groups/{int:pk}", response=GroupDetail, operation_id="show_group")
def show_group(request: MemberRequest, pk: int) -> Any:
    """One group with its members."""
    group = get_group(request, pk)
    rows = group.trajectories.select_related("task", "group").defer("task__spec")
    return {"group": group, "members": list(rows.order_by("member", "pk"))}


@router.get("/compare", response=ComparisonOut, operation_id="compare_experiments")
def compare_experiments(
    request: MemberRequest,
    id: list[int] = Query(..., min_length=2, max_length=comparison.MAX_COMPARED),  # noqa: B008
) -> Any:
    """Two to six experiments of the current team in this order: success, what differs, tests task by task."""
    if any(not 0 <= pk <= MAX_WHOLE for pk in id):
        raise BadValue("id", "not the id of an experiment")
    by_id = Experiment.objects.filter(team=member(request).team, pk__in=id).in_bulk()
    if missing := [pk for pk in id if pk not in by_id]:
        raise Http404(f"No such experiment in the current team: {missing[0]}.")
    experiments = [by_id[pk] for pk in dict.fromkeys(id)]
    latest = [row.last or SuccessPair() for row in experiment_table.list_rows(experiments)]
    outcomes = task_outcomes(one for pair in latest for one in pair.both)
    changes = comparison.changes_against_first(latest, outcomes)
    return {
        "runs": [
            {
                "id": experiment.pk,
                "name": experiment.name,
                "status": experiment.status,
                "sampled": pair.sampled,
                "greedy": pair.greedy,
                "sampled_against_first": change.sampled if change else None,
                "greedy_against_first": change.greedy if change else None,
            }
            for experiment, pair, change in zip(experiments, latest, changes, strict=True)
        ],
        "differences": [
            {"path": found.knob.path, "values": list(found.values)}
            for found in comparison.differences(experiments)
        ],
        "warnings": list(comparison.unlike(experiments, latest, outcomes)),
    }


@router.get(
    "/frames/{sha256}/{variant}", operation_id="read_frame", **binary_answer("image/png", "image/jpeg")
)
def frame(request: MemberRequest, sha256: str, variant: Literal["png", "jpg", "thumb.jpg"]) -> HttpResponse:
    """A screenshot that one of the caller's teams recorded: as the model saw it, as JPEG, or small."""
    teams = [held.team_id for held in memberships(request)]
    if not SHA256.match(sha256) or not Frame.objects.filter(team__in=teams, sha256=sha256).exists():
        raise Http404("No such frame.")
    try:
        body = read_frame(sha256, variant)
    except FileNotFoundError as error:
        raise Http404("The frame's file is gone.") from error
    return HttpResponse(body, content_type=VARIANTS[variant])
