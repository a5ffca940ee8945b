"""Success twice: sampled at the training temperature and greedy, of the same weights on the same tasks.

Only the greedy one tells learning from sharpening: a policy that is merely surer of what it could do before
is sampled better, yet chooses the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from webapp.experiments.evaluations.paired_statistics import Outcome, PairedChange, paired_change
from webapp.experiments.models import Evaluation, EvaluationTasks

SHARPENED_RISE = 0.10
"""Rise of sampled success above which greedy success has to have risen too."""

TaskOutcomes = dict[int, dict[str, Outcome]]
"""evaluation id -> task_id -> (solved, samples, group id)"""


@dataclass(slots=True)
class SuccessPair:
    """The evaluations of one policy version at one point of an experiment."""

    sampled: Evaluation | None = None
    greedy: Evaluation | None = None

    @property
    def either(self) -> Evaluation:
        """One of them, for what both share: name, step, checkpoint."""
        found = self.sampled or self.greedy
        assert found is not None, "a pair is made of at least one evaluation"
        return found

    @property
    def both(self) -> list[Evaluation]:
        """Those there are, sampled first."""
        return [one for one in (self.sampled, self.greedy) if one is not None]


def pairs_of(evaluations: Iterable[Evaluation]) -> list[SuccessPair]:
    """In the order of the evaluations; one whose temperature was not recorded counts as sampled."""
    found: dict[tuple[int, str, int], SuccessPair] = {}
    for evaluation in evaluations:
        key = (evaluation.experiment_id, evaluation.name, evaluation.step)
        pair = found.setdefault(key, SuccessPair())
        if evaluation.is_greedy:
            pair.greedy = evaluation
        else:
            pair.sampled = evaluation
    return list(found.values())


def task_outcomes(evaluations: Iterable[Evaluation]) -> TaskOutcomes:
    """How each task of them went; one query. Evaluations of older versions have none."""
    ids = [evaluation.pk for evaluation in evaluations]
    rows = EvaluationTasks.objects.filter(evaluation_id__in=ids)
    return dict(rows.values_list("evaluation_id", "results"))


@dataclass(frozen=True, slots=True)
class SuccessChange:
    """What happened to success between two points."""

    before: SuccessPair
    after: SuccessPair
    sampled: PairedChange | None
    """None without results by task of both."""
    greedy: PairedChange | None

    @property
    def sampled_points(self) -> float | None:
        """Rise of sampled success, in percentage points."""
        return _points(self.before.sampled, self.after.sampled)

    @property
    def greedy_points(self) -> float | None:
        return _points(self.before.greedy, self.after.greedy)

    @property
    def parts(self) -> list[tuple[str, PairedChange]]:
        """Those with results by task, greedy first: it is the stronger evidence."""
        both = (("Greedy", self.greedy), ("Sampled", self.sampled))
        return [(kind, paired) for kind, paired in both if paired is not None]

    @property
    def is_sharpened(self) -> bool:
        """True when sampled success rose by more than 10 points and chance, and greedy success did not."""
        rise = self.sampled_points
        if rise is None or self.greedy_points is None or rise <= 100 * SHARPENED_RISE:
            return False
        if self.sampled and self.sampled.low <= 0:
            return False
        return self.greedy.low <= 0 if self.greedy else self.greedy_points <= 0


def _points(before: Evaluation | None, after: Evaluation | None) -> float | None:
    return (after.success - before.success) * 100 if before and after else None


def change_between(before: SuccessPair, after: SuccessPair, outcomes: TaskOutcomes) -> SuccessChange:
    """The change over the tasks that both have."""

    def paired(first: Evaluation | None, last: Evaluation | None) -> PairedChange | None:
        if first is None or last is None or not outcomes.keys() >= {first.pk, last.pk}:
            return None
        return paired_change(outcomes[first.pk], outcomes[last.pk])

    return SuccessChange(
        before, after, paired(before.sampled, after.sampled), paired(before.greedy, after.greedy)
    )


def change_of_run(pairs: list[SuccessPair]) -> SuccessChange | None:
    """From the evaluation before the first step to the newest one; None while there are not two."""
    first = next((pair for pair in pairs if pair.either.name == "before"), None)
    if first is None or pairs[-1] is first:
        return None
    return change_between(first, pairs[-1], task_outcomes([*first.both, *pairs[-1].both]))
