"""terminal_change.v1: share of turns that changed the terminal's text; none is recorded here."""

from training.rewards.term import Episode, TermValue


def terminal_change(episode: Episode) -> TermValue:
    return TermValue(0.0, "no terminal text is recorded")
