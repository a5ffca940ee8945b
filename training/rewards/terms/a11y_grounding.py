"""a11y_grounding.v1: share of actions whose target is in the accessibility tree; none is recorded here."""

from training.rewards.term import Episode, TermValue


def a11y_grounding(episode: Episode) -> TermValue:
    return TermValue(0.0, "no accessibility tree is recorded")
