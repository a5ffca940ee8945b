"""Where the time of turns went, as pages show it: parts of a stacked bar with their words."""

from collections.abc import Sequence
from dataclasses import dataclass

from training.contracts.turn_trace import SpentMs, TurnPart

LABELS: dict[TurnPart, tuple[str, str]] = {
    TurnPart.REPORT: ("recording", "The screenshot and the turn before are stored, and pages are updated"),
    TurnPart.SNAPSHOT: ("snapshot", "The desktop's state is kept for branches"),
    TurnPart.TRANSFER: ("transfer", "To the policy server and back"),
    TurnPart.PREPARE: ("prompt", "Prompt and pictures are made ready for the engine"),
    TurnPart.PAUSE: (
        "engine away",
        "The engine slept, took new weights or was restarted; no limit counts it",
    ),
    TurnPart.QUEUE: ("queue", "Other turns were before it in the engine"),
    TurnPart.PREFILL: ("prefill", "The model reads what is new in the context"),
    TurnPart.DECODE: ("decode", "The model writes the completion"),
    TurnPart.GENERATE: ("generate", "Queue, prefill and decode of the engine's servers"),
    TurnPart.ACT: ("action", "The desktop does the action"),
    TurnPart.SCREENSHOT: ("screenshot", "Until the screen is at rest, and its picture"),
}
"""In the order of a turn: label, and a sentence about it."""


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the bar."""

    name: str
    label: str
    help: str
    ms: float
    percent: float
    """Of the bar."""


@dataclass(frozen=True, slots=True)
class TurnTime:
    """The bar of a turn, or of the mean of several."""

    parts: tuple[TimePart, ...]
    total_ms: float
    num_turns: int = 1


def time_of(spent_ms: SpentMs | None, num_turns: int = 1) -> TurnTime | None:
    """The bar of what was measured; None when nothing was."""
    total = sum((spent_ms or {}).values())
    if not spent_ms or total <= 0:
        return None
    parts = (
        TimePart(part.value, *LABELS[part], ms=spent_ms[part], percent=100 * spent_ms[part] / total)
        for part in LABELS
        if part in spent_ms
    )
    return TurnTime(parts=tuple(parts), total_ms=total, num_turns=num_turns)


def mean_time(turns: Sequence[SpentMs]) -> TurnTime | None:
    """The bar of their mean; a part that a turn had not counts as 0 in it."""
    if not turns:
        return None
    mean = {part: sum(spent.get(part, 0.0) for spent in turns) / len(turns) for part in LABELS}
    return time_of({part: value for part, value in mean.items() if value}, len(turns))
