"""good_turns.v1: share of turns whose one action was understood and carried out (Windows seed)."""

from training.rewards.term import Episode, TermValue, fraction, is_executed


def good_turns(episode: Episode) -> TermValue:
    return fraction([is_executed(turn) for turn in episode.turns])
