"""Saving a team's reward presets."""

from django.contrib.auth.models import User

from training.contracts.config import RewardPreset
from training.contracts.config.reward_presets import REWARD_PRESETS
from training.rewards.expressions import preset_problems
from webapp.accounts.models import Team
from webapp.accounts.services.named_versions import save_version
from webapp.experiments.models import SavedRewardPreset
from webapp.lib.request_values import BadValue

SHIPPED_NAMES = {preset.partition(".")[0] for preset in REWARD_PRESETS}


def save_preset(
    *, team: Team, user: User, name: str, definition: RewardPreset, alpha: float, note: str
) -> SavedRewardPreset:
    """The next version of `name`; older ones stay as they are. Raises BadValue."""
    if name in SHIPPED_NAMES:
        raise BadValue("name", f"{name} is a shipped preset; take another name")
    for place, problem in preset_problems(definition):
        raise BadValue(definition.terms[place].term, problem)
    return save_version(
        SavedRewardPreset,
        team=team,
        user=user,
        name=name,
        kind="reward",
        note=note,
        definition=definition.model_dump(mode="json"),
        alpha=alpha,
    )
