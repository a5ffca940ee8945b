"""/replay/reviews and /replay/guides: double annotation."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.replay_bulk import Chosen
from webapp.lib.request_values import MAX_WHOLE
from webapp.replay.access import get_item, get_label, get_review
from webapp.replay.filters import EntryFilter
from webapp.replay.models import LabelGuide, ReviewRound, Verdict
from webapp.replay.reviews.agreement import agreement_of, disagreements
from webapp.replay.services.guides import save_guide
from webapp.replay.services.review_rounds import (
    decide_item,
    last_label,
    next_label,
    note_opened,
    start_round,
    submit_label,
    take_back_label,
)

router = Router(tags=["replay"])


class ReviewIn(Schema):
    """Which entries, and how many people label each."""

    name: str = Field(max_length=60)
    people: list[str] = Field(max_length=20)
    """Account names."""
    num_labels: int = Field(2, ge=2, le=20)
    num_entries: int = Field(50, ge=1, le=1000)
    num_checks: int = Field(0, ge=0, le=1000)
    entries: Chosen | None = None
    """Null: the inbox."""


class ReviewOut(Schema):
    """A round of double annotation."""

    id: int
    name: str
    num_labels: int
    created_at: datetime


class PairOut(Schema):
    """Two people over the entries that both labelled."""

    one: str
    other: str
    num: int
    agreement: float
    kappa: float | None


class PersonOut(Schema):
    """One person's part."""

    name: str
    num_done: int
    num_open: int
    agreement: float | None
    median_s: float | None
    num_checks: int
    num_passed: int


class SaidOut(Schema):
    """One label of a complete entry."""

    by: str = Field(alias="person.username")
    verdict: str
    note: str


class DisagreementOut(Schema):
    """An entry that people see differently."""

    item: int = Field(alias="pk")
    entry: int = Field(alias="entry_id")
    labels: list[SaidOut]

    @staticmethod
    def resolve_labels(item: Any) -> list[Any]:
        return list(item.labels.all())


class ReviewDetail(ReviewOut):
    """With its agreement so far; labels of entries that are still open stay unseen."""

    kappa: float | None
    num_items: int
    num_complete: int
    num_agreed: int
    pairs: list[PairOut]
    people: list[PersonOut]
    disagreements: list[DisagreementOut]


class NextOut(Schema):
    """The caller's next label to give; nulls when all are in."""

    label: int | None
    entry: int | None
    trajectory: int | None


class SubmitIn(Schema):
    """What the caller says of an entry."""

    label: int = Field(ge=0, le=MAX_WHOLE)
    verdict: Verdict
    note: str = Field("", max_length=4000)


class SettleIn(Schema):
    """How a disagreement is settled."""

    item: int = Field(ge=0, le=MAX_WHOLE)
    verdict: Verdict


class GuideIn(Schema):
    """Guidelines for the task set of that name."""

    task_set: str = Field(max_length=100)
    text: str = Field(max_length=20_000)


class GuideOut(Schema):
    """One version."""

    task_set: str = Field(alias="task_set.name")
    version: int
    text: str
    created_at: datetime


def _detail(review: ReviewRound) -> dict[str, Any]:
    agreement = agreement_of(review)
    names = ("kappa", "num_items", "num_complete", "num_agreed", "pairs", "people")
    return {
        **{name: getattr(review, name) for name in ReviewOut.model_fields},
        **{name: getattr(agreement, name) for name in names},
        "disagreements": disagreements(review),
    }


@router.get("/reviews", response=list[ReviewOut], operation_id="list_reviews")
def list_reviews(request: MemberRequest) -> Any:
    """The newest 50 rounds."""
    return member(request).team.review_rounds.all()[:50]


@router.post("/reviews", response=ReviewOut, operation_id="start_review")
def start(request: MemberRequest, body: ReviewIn) -> Any:
    """Give entries to people, each to several of them."""
    team = member(request, Role.ANNOTATOR).team
    values = body.model_dump(include={"name", "people", "num_labels", "num_entries", "num_checks"})
    chosen = body.entries.entry_filter(Verdict.INBOX.value) if body.entries else EntryFilter()
    return start_round(team=team, user=request.user, chosen=chosen, **values)


@router.get("/reviews/{int:pk}", response=ReviewDetail, operation_id="show_review")
def show_review(request: MemberRequest, pk: int) -> Any:
    """Agreement, people and disagreements."""
    return _detail(get_review(request, pk))


@router.get("/reviews/{int:pk}/label", response=NextOut, operation_id="show_next_review_label")
def show_next(request: MemberRequest, pk: int) -> Any:
    """Which entry the caller labels next."""
    label = next_label(get_review(request, pk, Role.ANNOTATOR), request.user)
    if label is None:
        return {"label": None, "entry": None, "trajectory": None}
    note_opened(label)
    entry = label.item.entry
    return {"label": label.pk, "entry": entry.pk, "trajectory": entry.trajectory_id}


@router.post("/reviews/{int:pk}/label", response=ReviewOut, operation_id="submit_review_label")
def give(request: MemberRequest, pk: int, body: SubmitIn) -> Any:
    """Give the caller's own label; `undo` takes it back until the round is settled."""
    review = get_review(request, pk, Role.ANNOTATOR)
    submit_label(label=get_label(review, request.user, body.label), verdict=body.verdict, note=body.note)
    return review


@router.post("/reviews/{int:pk}/undo", response=NextOut, operation_id="undo_review_label")
def undo(request: MemberRequest, pk: int) -> Any:
    """Take back the caller's last label: it is the next one to give. 409 once the round is settled."""
    review = get_review(request, pk, Role.ANNOTATOR)
    label = last_label(review, request.user)
    if label is None:
        raise Conflict("There is no label of yours to take back, or the review is settled.")
    take_back_label(label=label)
    return show_next(request, pk)


@router.post("/reviews/{int:pk}/settle", response=ReviewDetail, operation_id="settle_review_item")
def settle(request: MemberRequest, pk: int, body: SettleIn) -> Any:
    """Settle a disagreement."""
    review = get_review(request, pk, Role.ANNOTATOR)
    decide_item(item=get_item(review, body.item), user=request.user, verdict=body.verdict)
    return _detail(review)


@router.get("/guides", response=list[GuideOut], operation_id="list_guides")
def list_guides(request: MemberRequest) -> Any:
    """The newest 100 versions of the team's guidelines, the newest of each task set first."""
    rows = LabelGuide.objects.filter(team=member(request).team).select_related("task_set")
    return rows[:100]


@router.post("/guides", response=GuideOut, operation_id="save_guide")
def save(request: MemberRequest, body: GuideIn) -> Any:
    """Keep the next version of the guidelines of a task set."""
    team = member(request, Role.ANNOTATOR).team
    return save_guide(team=team, user=request.user, task_set=body.task_set, text=body.text)
