"""efficiency.v1: share of the turn limit that was left; 1 for an episode without turns."""

from training.rewards.term import Episode, TermValue


def efficiency(episode: Episode) -> TermValue:
    if not episode.turns:
        return TermValue(1.0, "no turns")
    return TermValue(max(0.0, (episode.max_turns - episode.num_turns) / max(1, episode.max_turns)))
