"""Config section rewards, and what presets are made of: versioned lists of weighted terms.

A preset is never edited, only followed by a new version: stored rewards name it. Those of the reward lab
travel with the config, as `rewards.definition`: nothing has to be looked up to compute a reward again.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator

from training.contracts.config.section import Problem, Section, knob

MAX_TERMS = 30
MAX_EXPRESSION = 400
"""Characters."""

TermCount = Literal["once", "mean", "sum", "max"]
"""once = the expression is about the trajectory; else it is about a turn, and values are joined like this."""


class WeightedTerm(Section):
    """One term of a preset: one of Deskhand's own, or an expression."""

    term: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.v[0-9]+)?$", max_length=60)]
    """Versioned id, a key of `training.rewards.terms.TERMS`; or an expression's name, without a version."""
    weight: FiniteFloat
    is_partial: bool = False
    """Also multiplied by the experiment's alpha."""
    expression: Annotated[str, Field(max_length=MAX_EXPRESSION)] = ""
    """In CEL, over the fields of `training.rewards.expressions`; "" = one of TERMS."""
    count: TermCount = "mean"
    """Of an expression."""
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    """Limits of the value, before it is weighted."""

    @model_validator(mode="after")
    def _has_one_meaning(self) -> Self:
        if self.expression and "." in self.term:
            raise ValueError(f"an expression has a name without a version, not {self.term}")
        _check_limits(self.low, self.high)
        return self


class RewardPreset(Section):
    """Terms that add up, then limits."""

    terms: Annotated[tuple[WeightedTerm, ...], Field(min_length=1, max_length=MAX_TERMS)]
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        names = [row.term for row in self.terms]
        if double := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"{double} occurs twice; add up its weights")
        _check_limits(self.low, self.high)
        return self


def _check_limits(low: float | None, high: float | None) -> None:
    if low is not None and high is not None and low > high:
        raise ValueError(f"low {low:g} is above high {high:g}")


def _read_text(value: Any) -> Any:
    """Forms hold text: JSON, or nothing."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from error


class RewardConfig(Section):
    """Which reward terms, by versioned preset."""

    preset: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*\.v[0-9]+$", max_length=80)] = knob(
        "first-desk.v2",
        "Named, versioned list of terms and weights, shipped or of the reward lab.",
    )
    alpha: float = knob(0.3, "Weight of the partial score in slime-osworld presets.", ge=0, le=1)
    definition: Annotated[RewardPreset | None, BeforeValidator(_read_text)] = knob(
        None, "Terms of a preset of the reward lab; empty for a shipped one."
    )

    @property
    def terms(self) -> RewardPreset:
        """What `preset` stands for."""
        if self.definition is not None:
            return self.definition
        if self.preset not in REWARD_PRESETS:
            raise ValueError(f"unknown reward preset {self.preset!r}; known: {', '.join(REWARD_PRESETS)}")
        return REWARD_PRESETS[self.preset]


def reward_range(rewards: RewardConfig) -> float:
    """How far rewards lie apart at most: the preset's limits, or its weights times its terms' limits.

    A term without limits is taken to be one of [0, 1].
    """
    preset = rewards.terms
    widest = 0.0
    for row in preset.terms:
        width = 1.0 if row.low is None or row.high is None else row.high - row.low
        widest += abs(row.weight) * width * (rewards.alpha if row.is_partial else 1.0)
    if preset.low is not None and preset.high is not None:
        return min(widest, preset.high - preset.low)
    return widest


def reward_problems(rewards: RewardConfig) -> Iterator[Problem]:
    """A name that says nothing, or that says something else than the terms beside it."""
    is_shipped = rewards.preset in REWARD_PRESETS
    if is_shipped and rewards.definition is not None:
        yield (
            "rewards.definition",
            f"{rewards.preset} is a shipped preset, which is never edited: empty this, or give "
            "rewards.preset another name",
        )
    if not is_shipped and rewards.definition is None:
        yield (
            "rewards.preset",
            f"unknown reward preset {rewards.preset!r}; known: {', '.join(REWARD_PRESETS)}, and any other "
            "name with its terms in rewards.definition",
        )


def _row(term: str, weight: float, *, is_partial: bool = False) -> WeightedTerm:
    return WeightedTerm(term=term, weight=weight, is_partial=is_partial)


TASK_SCORE_V1 = RewardPreset(terms=(_row("task_score.v1", 1.0),))

FIRST_DESK_V1 = RewardPreset(
    terms=(
        _row("task_score.v1", 1.0),
        _row("parsable.v1", 0.1),
        _row("refused.v1", -0.1),
        _row("success_turns.v1", -0.05),
    )
)

SLIME_OSWORLD_V1 = RewardPreset(
    terms=(
        _row("task_score.v1", 1.0),
        _row("action_parse_valid.v1", 0.10, is_partial=True),
        _row("action_executed.v1", 0.15, is_partial=True),
        _row("a11y_grounding.v1", 0.10, is_partial=True),
        _row("tool_calling.v1", 0.15, is_partial=True),
        _row("efficiency.v1", 0.05, is_partial=True),
        _row("screen_change.v1", 0.05, is_partial=True),
        _row("a11y_change.v1", 0.05, is_partial=True),
        _row("terminal_change.v1", 0.05, is_partial=True),
        _row("repetition_penalty.v1", -1.0),
        _row("invalid_penalty.v1", -1.0),
        _row("fallback_penalty.v1", -1.0),
        _row("wait_penalty.v1", -1.0),
    ),
    low=0.0,
    high=1.0,
)

# As Slime-OSWorld's own code counts, without what its parser guesses and what that costs.
SLIME_OSWORLD_V2 = RewardPreset(
    terms=(
        _row("task_score.v1", 1.0),
        _row("action_parse_valid.v1", 0.10, is_partial=True),
        _row("action_executed.v1", 0.15, is_partial=True),
        _row("a11y_grounding.v2", 0.10, is_partial=True),
        _row("tool_calling.v2", 0.15, is_partial=True),
        _row("efficiency.v1", 0.05, is_partial=True),
        _row("screen_change.v2", 0.05, is_partial=True),
        _row("a11y_change.v2", 0.05, is_partial=True),
        _row("terminal_change.v2", 0.05, is_partial=True),
        _row("repetition_penalty.v2", -1.0),
        _row("invalid_penalty.v1", -1.0),
        _row("wait_penalty.v1", -1.0),
    ),
    low=0.0,
    high=1.0,
)

# Three times (score + bonus + half good + half great); the seed's noise on top is left out: it turned ties
# into random gradients.
WINDOWS_KEYBOARD_V1 = RewardPreset(
    terms=(
        _row("task_score.v1", 3.0),
        _row("good_turns.v1", 1.5),
        _row("great_turns.v1", 1.5),
        _row("done_bonus.v1", 3.0),
    ),
    low=0.0,
)


def _ended(preset: RewardPreset) -> RewardPreset:
    """The same with a score that counts only where the agent ended the trajectory."""
    names = {"task_score.v1": "ended_score.v1", "success_turns.v1": "ended_success_turns.v1"}
    rows = tuple(row.model_copy(update={"term": names.get(row.term, row.term)}) for row in preset.terms)
    return preset.model_copy(update={"terms": rows})


REWARD_PRESETS: dict[str, RewardPreset] = {
    "task-score.v1": TASK_SCORE_V1,
    "first-desk.v1": FIRST_DESK_V1,
    "first-desk.v2": _ended(FIRST_DESK_V1),
    "slime-osworld.v1": SLIME_OSWORLD_V1,
    "slime-osworld-ended.v1": _ended(SLIME_OSWORLD_V1),
    "slime-osworld.v2": SLIME_OSWORLD_V2,
    "windows-keyboard.v1": WINDOWS_KEYBOARD_V1,
    "windows-keyboard.v2": _ended(WINDOWS_KEYBOARD_V1),
}

REPLACED = ("slime-osworld.v1", "slime-osworld-ended.v1")
"""Presets that stored runs name and new ones are not offered: terms of them are 0 in every turn."""
SHIPPED_PRESETS = tuple(name for name in REWARD_PRESETS if name not in REPLACED)
