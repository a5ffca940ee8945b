"""How a trajectory came out: whether its task is solved, and whether the agent ended it.

Solved means that the agent reached the state and ended there. OSWorld looks at the state alone, also where a
limit cut the agent off: `SuccessRule.STATE` is that rule.
"""

from enum import StrEnum

from training.contracts.types import TrajectoryStatus

SOLVED_SCORE = 1.0 - 1e-9
"""A task's state is solved at this score: full, up to rounding."""


class Outcome(StrEnum):
    SOLVED = "solved"
    """Full score, and the agent ended it."""
    SOLVED_AT_LIMIT = "solved_at_limit"
    """Full score, but a limit ended it: the agent did not know that it was done."""
    FAILED = "failed"
    ERRORED = "errored"
    CANCELLED = "cancelled"


class SuccessRule(StrEnum):
    """Which outcomes count as a success."""

    ENDED = "ended"
    """Only what the agent solved and ended."""
    STATE = "state"
    """OSWorld's own: the state counts, also at a limit."""


OUTCOME_LABELS = {
    Outcome.SOLVED: "solved",
    Outcome.SOLVED_AT_LIMIT: "solved at a limit",
    Outcome.FAILED: "failed",
    Outcome.ERRORED: "errored",
    Outcome.CANCELLED: "cancelled",
}


def is_counted(status: TrajectoryStatus, rule: SuccessRule) -> bool:
    """Whether `rule` counts a success that ended so: under `ENDED` none that a limit ended."""
    return rule is SuccessRule.STATE or status is not TrajectoryStatus.TRUNCATED


def succeeded(score: float | None) -> bool:
    """True for a full task score, no matter what ended the trajectory."""
    return score is not None and score >= SOLVED_SCORE


def is_solved(status: TrajectoryStatus, score: float | None) -> bool:
    """True where the agent reached the state and ended there."""
    return outcome_of(status, score) is Outcome.SOLVED


def outcome_of(status: TrajectoryStatus, score: float | None) -> Outcome | None:
    """None while it runs, and for what ended without a score, such as an imported demonstration."""
    if status is TrajectoryStatus.ERRORED:
        return Outcome.ERRORED
    if status is TrajectoryStatus.CANCELLED:
        return Outcome.CANCELLED
    if not status.is_scored() or score is None:
        return None
    if not succeeded(score):
        return Outcome.FAILED
    return Outcome.SOLVED if status is TrajectoryStatus.TERMINATED else Outcome.SOLVED_AT_LIMIT
