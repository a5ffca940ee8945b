"""success_turns.v1: turns used, as a share of the limit, of a success.

Failures cost nothing here: a cost of every turn would teach a failing policy to give up early.
"""

from training.rewards.term import Episode, TermValue


def success_turns(episode: Episode) -> TermValue:
    return TermValue(episode.score * min(1.0, episode.num_turns / max(1, episode.max_turns)))
