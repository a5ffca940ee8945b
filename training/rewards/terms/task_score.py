"""task_score.v1: what the evaluator says of the final desktop, in [0, 1]."""

from training.rewards.term import Episode, TermValue


def task_score(episode: Episode) -> TermValue:
    return TermValue(episode.score)
