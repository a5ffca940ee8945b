"""screen_change.v1: share of turns after which the screen looked different."""

from training.rewards.term import Episode, TermValue, fraction


def screen_change(episode: Episode) -> TermValue:
    return fraction([bool(turn.screen_changed) for turn in episode.turns])
