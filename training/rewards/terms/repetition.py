"""repetition.v1: min(0.30, 0.40 x share of turns that repeat the one before in kind and point).

Actions without a point count as the same point, so two texts typed in a row are a repetition: that is
Slime-OSWorld's rule. Nothing below two turns.
"""

from itertools import pairwise

from training.rewards.term import Episode, TermValue, capped_penalty, kind_of, point_of


def repetition(episode: Episode) -> TermValue:
    if episode.num_turns < 2:
        return TermValue(0.0)
    same = [
        (kind_of(before), point_of(before)) == (kind_of(turn), point_of(turn))
        for before, turn in pairwise(episode.turns)
    ]
    return capped_penalty([False, *same], rate=0.40, cap=0.30)
