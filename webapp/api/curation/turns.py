"""Ratings of single turns, and what of an entry is trained on."""

from typing import Annotated, Any, Literal

from django.http import HttpResponseBase
from ninja import Field, File, Form, Router, Schema, UploadedFile

from training.contracts.types import Action
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.binary import binary_answer
from webapp.api.replay_schemas import EntryRow
from webapp.replay.access import get_entry
from webapp.replay.services.labels import label_entry
from webapp.replay.services.parts import split_entry
from webapp.replay.services.process_labels import (
    MAX_TURN,
    export_ratings,
    import_ratings,
    mark_first_wrong,
    rate_turn,
)
from webapp.replay.turn_edits import TurnEdit
from webapp.replay.turn_ratings import bad_turns
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.models import Trajectory

router = Router(tags=["replay"])


class TurnRating(Schema):
    """1 good, -1 bad."""

    turn: int
    rating: int


class TurnLabelOut(Schema):
    """One person's, or program's, ratings."""

    by: str = Field(alias="by.username")
    origin: str
    ratings: list[TurnRating]
    first_wrong: int | None

    @staticmethod
    def resolve_ratings(label: Any) -> list[dict[str, Any]]:
        return [{"turn": turn, "rating": rating} for turn, rating in label.ratings.items()]


class TurnLabelsOut(Schema):
    """What was said of the turns of a trajectory; they count from 0."""

    labels: list[TurnLabelOut]
    bad_turns: list[int]
    """Those with more against them than for them, which have no loss."""


class RateIn(Schema):
    """What the caller says of one turn; null leaves it as it is."""

    turn: int = Field(ge=0, le=MAX_TURN)
    rating: Literal["good", "bad", "none"] | None = None
    first_wrong: bool | None = None


class EditIn(Schema):
    """What of an entry is trained on; everything left out: as recorded."""

    first: int | None = Field(None, ge=0, le=MAX_TURN)
    last: int | None = Field(None, ge=0, le=MAX_TURN)
    context: list[Annotated[int, Field(ge=0, le=MAX_TURN)]] = []
    """Further turns that are not imitated."""
    actions: dict[str, Action] = {}
    """Index of a turn -> what should have been done."""


class SplitIn(Schema):
    """Where the second entry begins."""

    turn: int = Field(ge=1, le=MAX_TURN)


class EditOut(Schema):
    """The edit as it is stored."""

    id: int
    edit: dict[str, Any]


class StoredOut(Schema):
    """Of how many trajectories ratings were stored."""

    stored: int


@router.get("/trajectories/{int:pk}/turn-labels", response=TurnLabelsOut, operation_id="show_turn_labels")
def show_turn_labels(request: MemberRequest, pk: int) -> Any:
    """Every rating of the turns of a trajectory."""
    return _labels(get_trajectory(request, pk))


@router.post("/trajectories/{int:pk}/turn-labels", response=TurnLabelsOut, operation_id="rate_turn")
def rate(request: MemberRequest, pk: int, body: RateIn) -> Any:
    """Rate a turn, or say that it was the first wrong one."""
    trajectory = get_trajectory(request, pk, Role.ANNOTATOR)
    if body.rating is not None:
        rating = {"good": 1, "bad": -1, "none": None}[body.rating]
        rate_turn(trajectory=trajectory, user=request.user, index=body.turn, rating=rating)
    if body.first_wrong is not None:
        index = body.turn if body.first_wrong else None
        mark_first_wrong(trajectory=trajectory, user=request.user, index=index)
    return _labels(trajectory)


def _labels(trajectory: Trajectory) -> dict[str, Any]:
    labels = list(trajectory.process_labels.select_related("by"))
    return {"labels": labels, "bad_turns": bad_turns(labels)}


@router.put("/replay/{int:pk}/edit", response=EditOut, operation_id="edit_entry")
def edit_entry(request: MemberRequest, pk: int, body: EditIn) -> Any:
    """Trim an entry and correct its actions; an undo of its label takes it back."""
    entry = get_entry(request, pk, Role.ANNOTATOR)
    edit = TurnEdit.read(body.model_dump(mode="json", exclude_defaults=True))
    edit.check(set(entry.trajectory.turns.values_list("index", flat=True)))
    label_entry(entry=entry, user=request.user, edit=edit.as_json())
    return entry


@router.post("/replay/{int:pk}/split", response=EntryRow, operation_id="split_entry")
def split(request: MemberRequest, pk: int, body: SplitIn) -> Any:
    """Split off the turns from one on; answers their entry. An undo of the first entry takes it back."""
    return split_entry(entry=get_entry(request, pk, Role.ANNOTATOR), user=request.user, at=body.turn)


@router.get(
    "/replay/process-labels", operation_id="export_process_labels", **binary_answer("application/x-ndjson")
)
def export(request: MemberRequest) -> HttpResponseBase:
    """Every rating of the team's turns, one JSON line for each label of a trajectory."""
    return export_ratings(member(request).team, request.user)


@router.post("/replay/process-labels", response=StoredOut, operation_id="import_process_labels")
def import_labels(request: MemberRequest, file: File[UploadedFile], origin: Form[str]) -> Any:
    """Store ratings from such lines, all or none; `origin` names what made them."""
    team = member(request, Role.ANNOTATOR).team
    return {"stored": import_ratings(file, team=team, user=request.user, origin=origin)}
