"""/team: members and their roles, prices, and what is kept for how long."""

from typing import Any

from django.http import Http404
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member, owned_row, team_member
from webapp.accounts.forms import MemberForm
from webapp.accounts.models import Role
from webapp.accounts.services import members
from webapp.experiments.access import get_experiment
from webapp.experiments.models import MAX_CURRENCY, MAX_PRICE, PRICE_FIELDS
from webapp.experiments.queries.prices import prices_of
from webapp.experiments.services.prices import set_prices
from webapp.lib.request_values import MAX_WHOLE, BadValue
from webapp.retention.models import RetentionRule
from webapp.retention.services import rules

router = Router(tags=["team"])
MAX_DAYS = 36_500


class MemberOut(Schema):
    """A person in the current team."""

    id: int
    username: str = Field(alias="user.username")
    role: Role


class NewMemberOut(Schema):
    """A person who was put into the team."""

    member: MemberOut
    password: str | None
    """Of an account that was made for them; it is not shown again."""


class MemberIn(Schema):
    """Whom to put into the team; an account is made for a new name."""

    username: str = Field(min_length=1, max_length=150)
    role: Role = Role.VIEWER


class RoleIn(Schema):
    """Another role."""

    role: Role


class PasswordOut(Schema):
    """A new password, shown once."""

    password: str


class Prices(Schema):
    """What the team pays; 0 = not counted."""

    currency: str = Field("USD", min_length=1, max_length=MAX_CURRENCY)
    gpu_hour: float = Field(0, ge=0, le=MAX_PRICE)
    desktop_hour: float = Field(0, ge=0, le=MAX_PRICE)
    million_prompt_tokens: float = Field(0, ge=0, le=MAX_PRICE)
    million_completion_tokens: float = Field(0, ge=0, le=MAX_PRICE)


assert set(Prices.model_fields) == {"currency", *PRICE_FIELDS}


class RuleIn(Schema):
    """What is kept; at least one limit."""

    experiment: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """null = all experiments without a rule of their own."""
    max_age_days: int | None = Field(None, ge=0, le=MAX_DAYS)
    max_bytes: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Of screenshots; above it the oldest go."""


class RuleOut(Schema):
    """A rule."""

    id: int
    experiment: int | None = Field(alias="experiment_id")
    max_age_days: int | None
    max_bytes: int | None


@router.get("/members", response=list[MemberOut], operation_id="list_members")
def list_members(request: MemberRequest) -> Any:
    """Members of the current team."""
    return list(member(request).team.memberships.select_related("user").order_by("user__username"))


@router.post("/members", response={201: NewMemberOut}, operation_id="add_member")
def add_member(request: MemberRequest, body: MemberIn) -> Any:
    """Put a person into the current team."""
    team = member(request, Role.ADMIN).team
    form = MemberForm(body.model_dump())
    if not form.is_valid():
        raise BadValue("username", " ".join(map(str, form.errors.get("username", ()))))
    added, password = members.add_member(
        team=team, username=form.cleaned_data["username"], role=body.role, by=request.user
    )
    return Status(201, {"member": added, "password": password})


@router.patch("/members/{int:pk}", response=MemberOut, operation_id="change_role")
def change_role(request: MemberRequest, pk: int, body: RoleIn) -> Any:
    """Give a member another role."""
    chosen = team_member(request, pk)
    members.change_role(membership=chosen, role=body.role, by=request.user)
    return team_member(request, pk) if chosen.user_id != request.user.pk else chosen


@router.delete("/members/{int:pk}", response={204: None}, operation_id="remove_member")
def remove_member(request: MemberRequest, pk: int) -> Any:
    """Take a person out of the team; what they did stays."""
    members.remove_member(membership=team_member(request, pk), by=request.user)
    return Status(204, None)


@router.post("/members/{int:pk}/password", response=PasswordOut, operation_id="reset_password")
def reset_password(request: MemberRequest, pk: int) -> Any:
    """Generate a new password for a member whose account this team made."""
    return {"password": members.reset_password(membership=team_member(request, pk), by=request.user)}


@router.get("/prices", response=Prices, operation_id="show_prices")
def show_prices(request: MemberRequest) -> Any:
    """The current team's prices."""
    return prices_of(member(request).team)


@router.put("/prices", response=Prices, operation_id="save_prices")
def save_prices(request: MemberRequest, body: Prices) -> Any:
    """Change them; every cost is shown at them from now on."""
    team = member(request, Role.ADMIN).team
    set_prices(team=team, values=body.model_dump(), by=request.user)
    return body


@router.get("/retention", response=list[RuleOut], operation_id="list_rules")
def list_rules(request: MemberRequest) -> Any:
    """Rules by which trajectories go."""
    return list(member(request).team.retention_rules.order_by("experiment_id"))


@router.put("/retention", response=RuleOut, operation_id="save_rule")
def save_rule(request: MemberRequest, body: RuleIn) -> Any:
    """Make a rule, or change the one that there is for the same experiments."""
    team = member(request, Role.ADMIN).team
    if body.max_age_days is None and body.max_bytes is None:
        raise BadValue("max_age_days", "give it or max_bytes")
    experiment = None if body.experiment is None else get_experiment(request, body.experiment, Role.ADMIN)
    if experiment is not None and experiment.team_id != team.pk:
        raise Http404("No such experiment in this team.")
    limits = {"max_age_days": body.max_age_days, "max_bytes": body.max_bytes}
    return rules.set_rule(team=team, experiment=experiment, limits=limits, by=request.user)


@router.delete("/retention/{int:pk}", response={204: None}, operation_id="delete_rule")
def delete_rule(request: MemberRequest, pk: int) -> Any:
    """Without a rule everything stays."""
    rules.delete_rule(rule=owned_row(request, RetentionRule, pk, Role.ADMIN, "team"), by=request.user)
    return Status(204, None)
