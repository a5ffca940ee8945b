"""/replay/policies and /replay/snapshots: which entries enter training."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.lib.request_values import MAX_WHOLE
from webapp.replay.access import get_policy
from webapp.replay.curation.dry_run import dry_run
from webapp.replay.queries.rules import Rules
from webapp.replay.services.snapshots import save_policy, snapshots_of, take_snapshot

router = Router(tags=["replay"])


class RulesIn(Schema):
    """What an entry has to meet; null = no such rule."""

    only_gold: bool = False
    max_per_task: int | None = Field(None, ge=1, le=10_000)
    max_per_cluster: int | None = Field(None, ge=1, le=10_000)
    max_age: int | None = Field(None, ge=0, le=1_000_000)
    """Policy versions up to the team's newest experiment's."""
    min_ratio: float | None = Field(None, ge=0, le=100)
    """Mean importance ratio of its uses so far."""
    min_reward: float | None = Field(None, ge=-1e6, le=1e6)
    without: list[str] = Field([], max_length=20)
    """Scanners, as "loops.v1", that found nothing in it."""

    def rules(self) -> Rules:
        names = Rules.model_fields.keys()
        return Rules.read({name: value for name, value in self.model_dump().items() if name in names})


class LeftOut(Schema):
    """Entries that a rule keeps out."""

    reason: str
    entries: int


class DryRunOut(Schema):
    """What rules would do."""

    num_entries: int
    num_entering: int
    num_tasks: int
    num_covered: int
    left_out: list[LeftOut]
    median_ratio: float | None
    expected_share: float | None
    """Of what a step of the team's newest experiment trains on; null when it has not tried its tasks."""


class PolicyIn(RulesIn):
    """Rules under a name."""

    name: str = Field(max_length=60)
    note: str = Field("", max_length=300)


class PolicyOut(Schema):
    """One version; it never changes."""

    id: int
    name: str
    version: int
    rules: dict[str, Any]
    note: str
    created_at: datetime


class SnapshotIn(Schema):
    """Which version takes it, and its name."""

    policy: int = Field(ge=0, le=MAX_WHOLE)
    name: str = Field(max_length=60)


class SnapshotOut(Schema):
    """The buffer as it was; pinned by `replay.snapshot` in an experiment's config."""

    id: int
    name: str
    policy: str
    num_entries: int
    created_at: datetime

    @staticmethod
    def resolve_policy(snapshot: Any) -> str:
        return str(snapshot.policy)


@router.post("/policies/try", response=DryRunOut, operation_id="try_policy")
def try_policy(request: MemberRequest, body: RulesIn) -> Any:
    """What rules would let in now; nothing is stored."""
    found = dry_run(member(request).team, body.rules())
    return {
        "num_entries": found.admission.num_entries,
        "num_entering": found.num_entering,
        "num_tasks": found.num_tasks,
        "num_covered": found.num_covered,
        "left_out": [{"reason": k, "entries": v} for k, v in found.admission.left_out.items()],
        "median_ratio": found.median_ratio,
        "expected_share": found.share.share if found.share else None,
    }


@router.get("/policies", response=list[PolicyOut], operation_id="list_policies")
def list_policies(request: MemberRequest) -> Any:
    """Every version of the team's policies."""
    return member(request).team.admission_policies.all()


@router.post("/policies", response=PolicyOut, operation_id="save_policy")
def save(request: MemberRequest, body: PolicyIn) -> Any:
    """Keep rules as the next version of a name."""
    team = member(request, Role.ANNOTATOR).team
    return save_policy(team=team, user=request.user, name=body.name, rules=body.rules(), note=body.note)


@router.get("/snapshots", response=list[SnapshotOut], operation_id="list_buffer_snapshots")
def list_snapshots(request: MemberRequest) -> Any:
    """The newest 50."""
    return snapshots_of(member(request).team)


@router.post("/snapshots", response=SnapshotOut, operation_id="take_buffer_snapshot")
def take(request: MemberRequest, body: SnapshotIn) -> Any:
    """Keep what a saved policy lets in now."""
    team = member(request, Role.ANNOTATOR).team
    return take_snapshot(policy=get_policy(team, str(body.policy)), user=request.user, name=body.name)
