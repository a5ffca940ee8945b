"""invalid.v1: min(0.15, 0.30 x share of unparsable turns); nothing below two turns."""

from training.rewards.term import Episode, TermValue, capped_penalty


def invalid(episode: Episode) -> TermValue:
    if episode.num_turns < 2:
        return TermValue(0.0)
    return capped_penalty([turn.action is None for turn in episode.turns], rate=0.30, cap=0.15)
