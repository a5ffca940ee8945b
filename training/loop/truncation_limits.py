"""Which limits truncated the trajectories of a step, where each is set, and what to do about it."""

from collections import Counter
from collections.abc import Iterable

from training.contracts.config import ExperimentConfig
from training.contracts.types import Group, Limit

LimitsHit = Counter[tuple[Limit, str]]
"""(limit, its number) -> trajectories."""

LIMITS: dict[Limit, tuple[str, str]] = {
    Limit.TASK_TURNS: (
        "their task's own max_turns",
        "The task's own max_turns wins over desktops.max_turns: import the tasks with a larger one, choose "
        "tasks.levels that need fewer turns, or reward ending early.",
    ),
    Limit.TURNS: ("desktops.max_turns", "Raise desktops.max_turns, or reward ending early."),
    Limit.TOKENS: (
        "sampling.max_context_tokens",
        "Raise sampling.max_context_tokens, or choose prompt.history window.",
    ),
    Limit.TIME: (
        "desktops.trajectory_timeout_s",
        "Raise desktops.trajectory_timeout_s, or use fewer desktops so that each turn takes less time.",
    ),
}
"""Limit -> (where it is set, what to do)."""


def limits_hit(groups: Iterable[Group], config: ExperimentConfig) -> LimitsHit:
    """What truncated the members of `groups`; those of unknown cause are left out."""
    numbers = {
        Limit.TURNS: f"{config.desktops.max_turns}",
        Limit.TOKENS: f"{config.sampling.max_context_tokens}",
        Limit.TIME: f"{config.desktops.trajectory_timeout_s:g} s",
    }
    members = (member for group in groups for member in group.trajectories)
    return Counter(
        (member.limit, numbers.get(member.limit, str(member.task.max_turns)))
        for member in members
        if member.limit is not None
    )


def by_limits(hit: LimitsHit) -> str:
    """ ": 5 by desktops.max_turns (8), 2 by ...", the most frequent first; "" when none is known."""
    rows = [f"{number} by {LIMITS[limit][0]} ({words})" for (limit, words), number in hit.most_common()]
    return f": {', '.join(rows)}" if rows else ""


def remedy_of(hit: LimitsHit) -> str:
    """How to raise the limit that was hit most."""
    if not hit:
        return "Open a truncated trajectory: its page names the limit to raise. Or reward ending early."
    ((limit, _), _) = hit.most_common(1)[0]
    return LIMITS[limit][1]
