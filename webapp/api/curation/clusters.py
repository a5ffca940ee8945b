"""/replay/clusters: near-identical entries, and keeping the best of them."""

from typing import Any

from ninja import Field, FilterSchema, Query, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.replay_bulk import Chosen
from webapp.lib.request_values import MAX_WHOLE
from webapp.replay.curation.clusters import clusters_of, keep_best
from webapp.replay.filters import ALL
from webapp.replay.services.acceptance import PIECE, apply_rule, set_rule
from webapp.replay.services.clusters import MAX_KEEP

router = Router(tags=["replay"])


class ClusterOut(Schema):
    """Entries of one task that are near-identical."""

    id: int = Field(alias="pk")
    num: int
    num_inbox: int
    num_usable: int
    num_gold: int
    best_reward: float | None
    newest_entry: int = Field(alias="shown.pk")
    task_id: str = Field(alias="shown.trajectory.task.task_id")


class ClusterPageOut(Schema):
    """Largest first."""

    clusters: list[ClusterOut]
    num_clusters: int
    """Of at least two entries, on all pages."""
    num_alone: int
    num_surplus: int
    """Entries that `keep_best` would reject."""
    num_waiting: int
    """Not compared yet."""
    has_more: bool


class ClusterQuery(Chosen, FilterSchema):
    """Which entries, and which page of their clusters."""

    keep: int = Field(3, ge=1, le=MAX_KEEP)
    page: int = Field(1, ge=1, le=100_000)


class KeepBestIn(Chosen):
    """Of which entries how many of each cluster stay."""

    keep: int = Field(ge=1, le=MAX_KEEP)
    cluster: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Null: of every cluster within the filter."""


class KeptOut(Schema):
    """How many were rejected, and how many are left because 5,000 are the most at once."""

    rejected: int
    left: int


class RuleIn(Schema):
    """What it accepts, how much of that people judge, and when it stops."""

    min_score: float = Field(1.0, ge=0, le=1)
    keep: int = Field(3, ge=1, le=MAX_KEEP)
    without: list[str] = Field([], max_length=20)
    audit_share: float = Field(0.05, ge=0.01, le=1)
    max_error: float = Field(0.1, ge=0, le=1)


class AppliedOut(Schema):
    """What the rule did at once; what is left follows within minutes."""

    accepted: int
    rejected: int
    sampled: int


@router.post("/acceptance", response=AppliedOut, operation_id="set_acceptance_rule")
def set_acceptance_rule(request: MemberRequest, body: RuleIn) -> Any:
    """Accept the best of each cluster from now on, in the caller's name; people judge a sample."""
    team = member(request, Role.ANNOTATOR).team
    return apply_rule(set_rule(team=team, user=request.user, **body.model_dump()), at_most=PIECE)


@router.get("/clusters", response=ClusterPageOut, operation_id="list_clusters")
def list_clusters(request: MemberRequest, chosen: Query[ClusterQuery]) -> Any:
    """Clusters of near-identical entries, without rejected ones."""
    team = member(request).team
    return clusters_of(team.pk, chosen.entry_filter(ALL), keep=chosen.keep, page=chosen.page - 1)


@router.post("/clusters/keep", response=KeptOut, operation_id="keep_best")
def keep(request: MemberRequest, body: KeepBestIn) -> Any:
    """Reject all but the best of a cluster, or of all; gold ones always stay, and one undo takes it back."""
    team = member(request, Role.ANNOTATOR).team
    rejected, left = keep_best(
        team=team,
        user=request.user,
        chosen=body.entry_filter(ALL),
        keep=body.keep,
        cluster=body.cluster,
    )
    return {"rejected": rejected, "left": left}
