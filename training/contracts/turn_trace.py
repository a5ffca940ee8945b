"""Where the time of a turn went: its parts, in the order in which they happen, in milliseconds.

The policy server measures its own; the env worker measures the rest, and gives what is left of a call to
`TRANSFER`. Parts add up to the wall time from the end of the turn before to the screenshot after the action.
"""

from enum import StrEnum


class TurnPart(StrEnum):
    """One part of a turn's time."""

    REPORT = "report"
    """Recording: the end of the turn before, then the screenshot of this one."""
    SNAPSHOT = "snapshot"
    """Keeping the desktop's state before the turn; only where a person asked for it."""
    TRANSFER = "transfer"
    """The call to the policy server apart from what the server did."""
    PREPARE = "prepare"
    """Prompt and pictures become what the engine reads."""
    PAUSE = "pause"
    """The engine slept, took weights or was restarted (`Completion.waited_s`)."""
    QUEUE = "queue"
    """Until the engine began with it: other turns were before it."""
    PREFILL = "prefill"
    """The model reads what is new in the context."""
    DECODE = "decode"
    """The model writes the completion."""
    GENERATE = "generate"
    """Queue, prefill and decode of an engine that does not tell them apart (SGLang)."""
    ACT = "act"
    """The desktop does the action."""
    SCREENSHOT = "screenshot"
    """Until the screen is at rest, and its picture."""


SpentMs = dict[TurnPart, float]
"""Part -> milliseconds; parts that did not occur are left out."""


def rounded(spent: SpentMs) -> SpentMs:
    """To a tenth, without what took less."""
    return {part: round(value, 1) for part, value in spent.items() if value >= 0.05}
