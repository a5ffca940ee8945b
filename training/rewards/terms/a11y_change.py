"""a11y_change.v1: how much the accessibility tree changed; none is recorded here."""

from training.rewards.term import Episode, TermValue


def a11y_change(episode: Episode) -> TermValue:
    return TermValue(0.0, "no accessibility tree is recorded")
