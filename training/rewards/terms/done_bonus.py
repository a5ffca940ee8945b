"""done_bonus.v1: 0.2 for ending the episode oneself, as far as score + bonus stay within 1."""

from training.contracts.types import ActionKind
from training.rewards.term import Episode, TermValue

BONUS = 0.2


def done_bonus(episode: Episode) -> TermValue:
    last = episode.turns[-1].action if episode.turns else None
    is_done = last is not None and last.kind is ActionKind.TERMINATE and last.status == "success"
    return TermValue(min(BONUS, max(0.0, 1.0 - episode.score)) if is_done else 0.0)
