"""Config section rewards, and the presets it chooses from: versioned lists of terms and weights.

A preset is never edited, only followed by a new version: stored rewards name it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training.contracts.config.section import Section, knob

RewardPresetName = Literal["task-score.v1", "first-desk.v1", "slime-osworld.v1", "windows-keyboard.v1"]


class RewardConfig(Section):
    """Which reward terms, by versioned preset."""

    preset: RewardPresetName = knob("first-desk.v1", "Named, versioned list of terms and weights.")
    alpha: float = knob(0.3, "Weight of the partial score in slime-osworld presets.", ge=0, le=1)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """One term of a preset."""

    term: str
    """Versioned id, a key of `training.rewards.terms.TERMS`."""
    weight: float
    is_partial: bool = False
    """Also multiplied by the experiment's alpha."""


@dataclass(frozen=True, slots=True)
class RewardPreset:
    """Terms that add up, then limits."""

    terms: tuple[WeightedTerm, ...]
    low: float | None = None
    high: float | None = None


TASK_SCORE_V1 = RewardPreset(terms=(WeightedTerm("task_score.v1", 1.0),))

FIRST_DESK_V1 = RewardPreset(
    terms=(
        WeightedTerm("task_score.v1", 1.0),
        WeightedTerm("parsable.v1", 0.1),
        WeightedTerm("refused.v1", -0.1),
        WeightedTerm("success_turns.v1", -0.05),
    )
)

SLIME_OSWORLD_V1 = RewardPreset(
    terms=(
        WeightedTerm("task_score.v1", 1.0),
        WeightedTerm("action_parse_valid.v1", 0.10, is_partial=True),
        WeightedTerm("action_executed.v1", 0.15, is_partial=True),
        WeightedTerm("a11y_grounding.v1", 0.10, is_partial=True),
        WeightedTerm("tool_calling.v1", 0.15, is_partial=True),
        WeightedTerm("efficiency.v1", 0.05, is_partial=True),
        WeightedTerm("screen_change.v1", 0.05, is_partial=True),
        WeightedTerm("a11y_change.v1", 0.05, is_partial=True),
        WeightedTerm("terminal_change.v1", 0.05, is_partial=True),
        WeightedTerm("repetition_penalty.v1", -1.0),
        WeightedTerm("invalid_penalty.v1", -1.0),
        WeightedTerm("fallback_penalty.v1", -1.0),
        WeightedTerm("wait_penalty.v1", -1.0),
    ),
    low=0.0,
    high=1.0,
)

# Three times (score + bonus + half good + half great); the seed's noise on top is left out: it turned ties
# into random gradients.
WINDOWS_KEYBOARD_V1 = RewardPreset(
    terms=(
        WeightedTerm("task_score.v1", 3.0),
        WeightedTerm("good_turns.v1", 1.5),
        WeightedTerm("great_turns.v1", 1.5),
        WeightedTerm("done_bonus.v1", 3.0),
    ),
    low=0.0,
)

REWARD_PRESETS: dict[RewardPresetName, RewardPreset] = {
    "task-score.v1": TASK_SCORE_V1,
    "first-desk.v1": FIRST_DESK_V1,
    "slime-osworld.v1": SLIME_OSWORLD_V1,
    "windows-keyboard.v1": WINDOWS_KEYBOARD_V1,
}
