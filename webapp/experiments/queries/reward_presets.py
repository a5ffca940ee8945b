"""Reward presets of a team: shipped ones, and those that people saved, by name."""

from collections.abc import Iterator, Mapping
from typing import Any

from training.contracts.config import RewardConfig
from training.contracts.config.reward_presets import REWARD_PRESETS, SHIPPED_PRESETS
from training.contracts.config.section import Problem
from training.rewards.expressions import preset_problems
from webapp.accounts.models import Team
from webapp.experiments.models import SavedRewardPreset


def preset_names(team: Team) -> list[str]:
    """Every preset that the team is offered: shipped ones, then its own, the newest version first."""
    return [*SHIPPED_PRESETS, *(str(saved) for saved in SavedRewardPreset.objects.filter(team=team))]


def saved_preset(team: Team, preset: str) -> SavedRewardPreset | None:
    """The team's own preset that "NAME.vVERSION" names."""
    return SavedRewardPreset.named(team, preset)


def with_saved_terms(values: Mapping[str, Any], team: Team) -> dict[str, Any]:
    """A config's plain values, with the terms of the team's own preset that they only name.

    Terms that stand there stay, and so does a name that is not known: validation says what is wrong with it.
    """
    rewards = values.get("rewards")
    if not isinstance(rewards, Mapping) or rewards.get("definition") not in (None, ""):
        return dict(values)
    name = rewards.get("preset")
    saved = saved_preset(team, name) if isinstance(name, str) and name not in REWARD_PRESETS else None
    if saved is None:
        return dict(values)
    filled = {"alpha": saved.alpha, **rewards, "definition": saved.definition}
    return {**values, "rewards": filled}


def saved_problems(rewards: RewardConfig, team: Team) -> Iterator[Problem]:
    """Terms that do not compile, and a name that means something else in this team."""
    if rewards.definition is None:
        return
    for place, problem in preset_problems(rewards.definition):
        yield "rewards.definition", f"{rewards.definition.terms[place].term}: {problem}"
    saved = saved_preset(team, rewards.preset)
    if saved is not None and saved.rewards.definition != rewards.definition:
        yield (
            "rewards.definition",
            f"is not what {rewards.preset} was saved with, and presets are never edited: empty it, or give "
            "rewards.preset another name",
        )
