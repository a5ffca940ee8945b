"""Presets of the reward lab on the launch form: the name is chosen, its terms come along."""

from django.http import QueryDict

from training.contracts.config.reward_presets import REWARD_PRESETS
from webapp.accounts.models import Team
from webapp.experiments.knobs import as_text
from webapp.experiments.models import SavedRewardPreset
from webapp.experiments.queries.reward_presets import saved_preset

PRESET, DEFINITION, ALPHA = "rewards.preset", "rewards.definition", "rewards.alpha"


def with_saved_preset(post: QueryDict, team: Team) -> QueryDict:
    """The form with the terms of the preset that it names; those of an unknown one stay as they were sent."""
    name = post.get(PRESET)
    if name is None:
        return post
    saved = None if name in REWARD_PRESETS else saved_preset(team, name)
    if saved is None and name not in REWARD_PRESETS:
        return post
    filled = post.copy()
    filled[DEFINITION] = as_text(saved.rewards.definition) if saved else ""
    return filled


def knobs_of(saved: SavedRewardPreset) -> dict[str, str]:
    """Knob -> text, for an experiment that is rewarded by it."""
    rewards = saved.rewards
    return {PRESET: rewards.preset, ALPHA: as_text(rewards.alpha), DEFINITION: as_text(rewards.definition)}
