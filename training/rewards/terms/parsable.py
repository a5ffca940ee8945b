"""parsable.v1: share of turns whose completion said an action."""

from training.rewards.term import Episode, TermValue, fraction


def parsable(episode: Episode) -> TermValue:
    return fraction([turn.action is not None for turn in episode.turns])
