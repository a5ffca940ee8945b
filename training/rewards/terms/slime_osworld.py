"""Reward terms of Slime-OSWorld as its own code computes them, over what was measured of each turn.

Kinds are the names of its pyautogui calls. What its parser guesses from a completion without a call is no
action here, and counts as unparsable.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import ActionKind
from training.rewards.term import (
    ScoredTrajectory,
    TermFunction,
    TermValue,
    TurnFacts,
    capped_penalty,
    fraction,
)
from training.rewards.terms.behaviour import few_turns

UNKNOWN = "unknown"
NAMES = {
    ActionKind.CLICK: "click",
    ActionKind.MIDDLE_CLICK: "click",  # it has no middle button, and guesses a click
    ActionKind.DOUBLE_CLICK: "doubleclick",
    ActionKind.TRIPLE_CLICK: "tripleclick",
    ActionKind.RIGHT_CLICK: "rightclick",
    ActionKind.MOVE: "moveto",
    ActionKind.DRAG: "dragto",
    ActionKind.SCROLL: "scroll",
    ActionKind.TYPE: "write",
    ActionKind.WAIT: "wait",
}
MODALITIES = ("click", "type", "key", "scroll", "drag", "wait")
NO_TREE = "no accessibility tree was recorded"
POINTED = ("click", "doubleclick", "rightclick")
"""Calls whose point it remembers; of all others only the name counts as repeated."""


def call_name(turn: TurnFacts) -> str:
    """What Slime-OSWorld calls the turn's action."""
    if turn.kind is ActionKind.KEY:
        return "hotkey" if turn.num_keys > 1 else "press"
    if turn.kind is ActionKind.TERMINATE:
        return "fail" if turn.claim == "failure" else "done"
    return NAMES.get(turn.kind, UNKNOWN) if turn.kind else UNKNOWN


def tool_calling(trajectory: ScoredTrajectory) -> TermValue:
    """Variety and number of calls by Slime-OSWorld's names; write and press are no modality there.

    0.4 x min(1, names / 3) + 0.4 x complexity + 0.2 x min(1, modalities / 2), where "unknown" is a name
    complexity: 1 for 2 to 5 turns, turns / 2 below, max(0.5, 5 / turns) above
    """
    if not trajectory.turns:
        return TermValue(0.0)
    names = {call_name(turn) for turn in trajectory.turns}
    modalities = {word for word in MODALITIES if any(word in name for name in names)}
    variety = 0.4 * min(1.0, len(names) / 3) + 0.2 * min(1.0, len(modalities) / 2)
    return TermValue(variety + 0.4 * few_turns(trajectory.num_turns))


def screen_change(trajectory: ScoredTrajectory) -> TermValue:
    """Mean difference of the screens before and after each turn, in grey at 64 x 64; 0 to 1."""
    marks = [turn.measured.screen_difference for turn in trajectory.turns]
    return _mean(marks, "the difference of the screens was not recorded")


def a11y_grounding(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns whose typed text, or first key's name, stood in the accessibility tree before them."""
    return _mean([turn.measured.is_grounded for turn in trajectory.turns], NO_TREE)


def a11y_change(trajectory: ScoredTrajectory) -> TermValue:
    """Mean change of the accessibility tree's length, as a share of the length before, at most 1."""
    return _mean([_tree_change(turn.measured) for turn in trajectory.turns], NO_TREE)


def terminal_change(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns after which the terminal showed another text."""
    marks = [turn.measured.terminal_changed for turn in trajectory.turns]
    return _mean(marks, "no terminal text was recorded")


def repetition_penalty(trajectory: ScoredTrajectory) -> TermValue:
    """min(0.30, 0.40 x share of turns that repeat the call before, and its point if a click); 0 below two.

    Two drags, scrolls or texts in a row are a repetition, wherever they point; press and hotkey differ.
    """
    if trajectory.num_turns < 2:
        return TermValue(0.0)
    same = [_call(before) == _call(turn) for before, turn in pairwise(trajectory.turns)]
    return capped_penalty([False, *same], rate=0.40, cap=0.30)


def _call(turn: TurnFacts) -> tuple[str, int | None, int | None]:
    name = call_name(turn)
    return (name, turn.x, turn.y) if name in POINTED else (name, None, None)


def _tree_change(found: MeasuredTurn) -> float | None:
    if found.tree_before is None or found.tree_after is None:
        return None
    return (
        min(1.0, abs(found.tree_after - found.tree_before) / found.tree_before) if found.tree_before else 0.0
    )


def _mean(marks: Sequence[float | None], why_not: str) -> TermValue:
    """Mean of the turns' marks; one that was not recorded is 0, and without any `why_not` says so."""
    value = fraction([mark or 0.0 for mark in marks])
    return value if any(mark is not None for mark in marks) else replace(value, note=why_not)


TERMS: dict[str, TermFunction] = {
    "screen_change.v2": screen_change,
    "tool_calling.v2": tool_calling,
    "repetition_penalty.v2": repetition_penalty,
    "a11y_grounding.v2": a11y_grounding,
    "a11y_change.v2": a11y_change,
    "terminal_change.v2": terminal_change,
}
