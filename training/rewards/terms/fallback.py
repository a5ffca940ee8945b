"""fallback.v1: penalty for actions guessed from unparsable text; this parser never guesses."""

from training.rewards.term import Episode, TermValue


def fallback(episode: Episode) -> TermValue:
    return TermValue(0.0, "the parser never guesses")
