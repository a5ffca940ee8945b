"""Named, versioned lists of terms and weights. A preset is never edited, only followed by a new version.

Adding a term is one file and one row; adding a preset is one entry of PRESETS.
"""

from __future__ import annotations

from dataclasses import dataclass

from training.rewards.term import TermFunction
from training.rewards.terms.a11y_change import a11y_change
from training.rewards.terms.a11y_grounding import a11y_grounding
from training.rewards.terms.done_bonus import done_bonus
from training.rewards.terms.efficiency import efficiency
from training.rewards.terms.executed import executed
from training.rewards.terms.fallback import fallback
from training.rewards.terms.good_turns import good_turns
from training.rewards.terms.great_turns import great_turns
from training.rewards.terms.invalid import invalid
from training.rewards.terms.parsable import parsable
from training.rewards.terms.refused import refused
from training.rewards.terms.repetition import repetition
from training.rewards.terms.screen_change import screen_change
from training.rewards.terms.success_turns import success_turns
from training.rewards.terms.task_score import task_score
from training.rewards.terms.terminal_change import terminal_change
from training.rewards.terms.tool_calling import tool_calling
from training.rewards.terms.waiting import waiting


@dataclass(frozen=True, slots=True)
class Row:
    """One term of a preset."""

    name: str
    term: TermFunction
    weight: float
    is_partial: bool = False
    """Also multiplied by the experiment's alpha."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Terms that add up, then limits."""

    rows: tuple[Row, ...]
    low: float | None = None
    high: float | None = None


TASK_SCORE_V1 = Preset(rows=(Row("task_score.v1", task_score, 1.0),))

FIRST_DESK_V1 = Preset(
    rows=(
        Row("task_score.v1", task_score, 1.0),
        Row("parsable.v1", parsable, 0.1),
        Row("refused.v1", refused, -0.1),
        Row("success_turns.v1", success_turns, -0.05),
    )
)

SLIME_OSWORLD_V1 = Preset(
    rows=(
        Row("task_score.v1", task_score, 1.0),
        Row("action_parse_valid.v1", parsable, 0.10, is_partial=True),
        Row("action_executed.v1", executed, 0.15, is_partial=True),
        Row("a11y_grounding.v1", a11y_grounding, 0.10, is_partial=True),
        Row("tool_calling.v1", tool_calling, 0.15, is_partial=True),
        Row("efficiency.v1", efficiency, 0.05, is_partial=True),
        Row("screen_change.v1", screen_change, 0.05, is_partial=True),
        Row("a11y_change.v1", a11y_change, 0.05, is_partial=True),
        Row("terminal_change.v1", terminal_change, 0.05, is_partial=True),
        Row("repetition_penalty.v1", repetition, -1.0),
        Row("invalid_penalty.v1", invalid, -1.0),
        Row("fallback_penalty.v1", fallback, -1.0),
        Row("wait_penalty.v1", waiting, -1.0),
    ),
    low=0.0,
    high=1.0,
)

# Three times (score + bonus + half good + half great); the seed's noise on top is left out: it turned ties
# into random gradients.
WINDOWS_KEYBOARD_V1 = Preset(
    rows=(
        Row("task_score.v1", task_score, 3.0),
        Row("good_turns.v1", good_turns, 1.5),
        Row("great_turns.v1", great_turns, 1.5),
        Row("done_bonus.v1", done_bonus, 3.0),
    ),
    low=0.0,
)

PRESETS: dict[str, Preset] = {
    "task-score.v1": TASK_SCORE_V1,
    "first-desk.v1": FIRST_DESK_V1,
    "slime-osworld.v1": SLIME_OSWORLD_V1,
    "windows-keyboard.v1": WINDOWS_KEYBOARD_V1,
}
