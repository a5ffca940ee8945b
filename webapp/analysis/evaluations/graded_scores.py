"""Scores that an evaluator grades, as by the share of right fields: they rise long before a full score."""

from dataclasses import dataclass

from training.statistics.paired_statistics import direction, paired_change
from webapp.experiments.models import Evaluation, EvaluationTasks

PARTS = 1000
"""Of a score: the paired test counts in whole numbers."""


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """Mean score of the same held-out tasks before and after."""

    before: float
    after: float
    p: float

    @property
    def gain(self) -> float:
        """In percentage points."""
        return (self.after - self.before) * 100

    @property
    def moved(self) -> int:
        """See `direction`."""
        return direction(self.gain, self.p)


def score_change(before: Evaluation | None, after: Evaluation | None) -> ScoreChange | None:
    """As it was kept; None where no score is partial."""
    if before is None or before.mean_score is None:
        return None
    if after is None or after.mean_score is None or after.p_of_score is None:
        return None
    return ScoreChange(before.mean_score, after.mean_score, after.p_of_score)


def p_of_score(before: Evaluation, after: Evaluation) -> float | None:
    """Of the paired test over the tasks that both have; None where no score is partial."""
    if not (before.is_graded or after.is_graded):
        return None
    first, last = (EvaluationTasks.objects.filter(evaluation=one).first() for one in (before, after))
    change = paired_change(_counts(first), _counts(last)) if first and last else None
    return change.p if change else None


def _counts(tasks: EvaluationTasks) -> dict[str, tuple[int, int]]:
    """task_id -> (thousandths of its mean score, all of them)."""
    return {name: (round(score * PARTS), PARTS) for name, score in tasks.scores.items()}
