"""executed.v1: share of turns whose action the desktop carried out."""

from training.rewards.term import Episode, TermValue, fraction, is_executed


def executed(episode: Episode) -> TermValue:
    return fraction([is_executed(turn) for turn in episode.turns])
