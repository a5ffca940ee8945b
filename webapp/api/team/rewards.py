"""/rewards: presets of the reward lab, tried on what is stored, and saved."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from training.contracts.config import RewardConfig, RewardPreset
from training.rewards.expressions import preset_problems
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiments.models import SavedRewardPreset
from webapp.experiments.queries.reward_presets import preset_names
from webapp.experiments.services.reward_presets import save_preset
from webapp.lib.request_values import BadValue
from webapp.rewards_lab.effects import effects_of
from webapp.rewards_lab.preset_form import DRAFT
from webapp.rewards_lab.slices import load_slice, reward_slice

router = Router(tags=["rewards"])


class SavedPreset(Schema):
    """One version of a preset that the team saved."""

    name: str
    version: int
    definition: RewardPreset
    alpha: float
    note: str
    created_at: datetime


class RewardsOut(Schema):
    """What an experiment may be launched with."""

    names: list[str]
    """Shipped ones, then the team's own."""
    saved: list[SavedPreset]


class TryIn(Schema):
    """A preset, and what to try it on."""

    definition: RewardPreset
    alpha: float = Field(0.3, ge=0, le=1)
    slice: str = Field("buffer-all", max_length=60)
    """buffer-all, or another one of the lab's page, e.g. experiment-12."""


class SaveIn(Schema):
    """A preset to keep, as the next version of its name."""

    name: str = Field(min_length=1, max_length=60)
    definition: RewardPreset
    alpha: float = Field(0.3, ge=0, le=1)
    note: str = Field("", max_length=300)


class EffectsOut(Schema):
    """What it would have changed."""

    num_trajectories: int
    num_groups: int
    mean: float | None
    correlation: float | None
    """Rank correlation with the score."""
    num_flat: int
    """Groups that would have no signal."""
    num_turned: int
    """Trajectories whose advantage would change its sign."""
    inverted: list[int]
    """Groups in which a failed member would be rewarded at least as much as a solved one."""


@router.get("", response=RewardsOut, operation_id="list_rewards")
def list_rewards(request: MemberRequest) -> Any:
    """Names of all presets, and the team's own with their terms."""
    team = member(request).team
    return {"names": preset_names(team), "saved": list(SavedRewardPreset.objects.filter(team=team))}


@router.post("/try", response=EffectsOut, operation_id="try_rewards")
def try_rewards(request: MemberRequest, body: TryIn) -> Any:
    """What a preset would have done to stored trajectories; it changes nothing."""
    team = member(request).team
    _check(body.definition)
    stored = load_slice(team.pk, body.slice)
    if not stored.trajectories:
        nothing: dict[str, Any] = dict.fromkeys(
            ("num_trajectories", "num_groups", "num_flat", "num_turned"), 0
        )
        return nothing | {"mean": None, "correlation": None, "inverted": []}
    rewards = RewardConfig(preset=DRAFT, alpha=body.alpha, definition=body.definition)
    found = effects_of(stored, reward_slice(stored, rewards))
    return {
        "num_trajectories": len(stored.trajectories),
        "num_groups": found.num_groups,
        "mean": found.mean,
        "correlation": found.correlation,
        "num_flat": found.num_flat,
        "num_turned": found.num_turned,
        "inverted": found.inverted,
    }


@router.post("", response={201: SavedPreset}, operation_id="save_rewards")
def save_rewards(request: MemberRequest, body: SaveIn) -> Any:
    """Save the next version of a name; older ones stay as they are."""
    team = member(request, Role.OPERATOR).team
    return Status(201, save_preset(team=team, user=request.user, **dict(body)))


def _check(definition: RewardPreset) -> None:
    for place, problem in preset_problems(definition):
        raise BadValue(definition.terms[place].term, problem)
