"""task_score.v1: what the evaluator says of the final desktop, in [0, 1]."""

from workers.rewards.base import Episode, TermValue


def task_score(episode: Episode) -> TermValue:
    return TermValue(episode.score)
