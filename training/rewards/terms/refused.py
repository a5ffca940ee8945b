"""refused.v1: share of turns without effect: nothing could be parsed, or the desktop refused it."""

from training.rewards.term import Episode, TermValue, fraction, is_executed


def refused(episode: Episode) -> TermValue:
    return fraction([not is_executed(turn) for turn in episode.turns])
