"""Success twice: sampled at the training temperature and greedy, of the same weights on the same tasks.

Only the greedy one tells learning from sharpening: a policy that is merely surer of what it could do before
is sampled better, yet chooses the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from training.contracts.eye_test import stamp_differences
from training.contracts.outcome import SuccessRule
from training.statistics.paired_statistics import SIGNIFICANT_P, Outcome, PairedChange, paired_change
from webapp.analysis.evaluations.graded_scores import ScoreChange, score_change
from webapp.experiments.models import Evaluation, EvaluationTasks
from webapp.experiments.models.results import Proportion

SHARPENED_RISE = 0.10
"""Rise of sampled success above which greedy success has to have risen too."""


class TaskOutcomes(dict[int, dict[str, Outcome]]):
    """evaluation id -> task_id -> (successes by the rule, samples, group id, successes at a limit)"""

    def __init__(self, rule: SuccessRule, found: Mapping[int, dict[str, Outcome]] | None = None) -> None:
        super().__init__(found or {})
        self.rule = rule

    def of(self, tasks: Container[str]) -> TaskOutcomes:
        """Only these tasks."""
        kept = {pk: {name: one for name, one in own.items() if name in tasks} for pk, own in self.items()}
        return TaskOutcomes(self.rule, kept)


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


@dataclass(frozen=True, slots=True)
class SuccessLine:
    """Greedy or sampled success before and after, as a list shows it."""

    kind: str
    rule: SuccessRule
    before: Proportion | None
    after: Proportion | None
    newest: Evaluation
    missing_text: str = ""
    """What either of them misses; see `Evaluation.missing_text`."""

    differences: tuple[str, ...] = ()
    """Between what measured both, in words."""

    scores: ScoreChange | None = None
    """None where no score is partial."""

    @property
    def gain(self) -> float | None:
        """In percentage points."""
        return (self.after.value - self.before.value) * 100 if self.before and self.after else None

    @property
    def p(self) -> float | None:
        """Of the paired test of the gain; None when there is none, or it was not kept."""
        return self.newest.p_of_change

    @property
    def num_samples(self) -> int:
        return self.newest.num_samples

    @property
    def num_at_limit(self) -> int:
        """Of the newest, those that only OSWorld's rule counts."""
        return self.newest.num_solved_at_limit or 0 if self.rule is SuccessRule.ENDED else 0


def success_lines(before: SuccessPair, after: SuccessPair) -> list[SuccessLine]:
    """Sampled and greedy, as far as there are any, by the rule that all of them were counted by."""
    rule = common_rule([*before.both, *after.both])
    kinds = (("Sampled", before.sampled, after.sampled), ("Greedy", before.greedy, after.greedy))
    return [
        SuccessLine(
            kind,
            rule,
            first.by(rule) if first else None,
            last.by(rule) if last else None,
            newest,
            ", then ".join(one.missing_text for one in (first, last) if one and one.missing_text),
            tuple(stamp_differences(first.eye_test, last.eye_test)) if first and last else (),
            score_change(first, last),
        )
        for kind, first, last in kinds
        if (newest := last or first)
    ]


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


def common_rule(evaluations: Iterable[Evaluation | None]) -> SuccessRule:
    """By which all of them can be compared: that of the state where one was counted by it only."""
    rules = {evaluation.rule for evaluation in evaluations if evaluation is not None}
    return SuccessRule.STATE if SuccessRule.STATE in rules else SuccessRule.ENDED


def task_outcomes(evaluations: Iterable[Evaluation], rule: SuccessRule | None = None) -> TaskOutcomes:
    """How each task of them went by a rule, else by their common one; one query.

    Evaluations of older versions have none.
    """
    found = list(evaluations)
    rule = rule or common_rule(found)
    rows = EvaluationTasks.objects.filter(evaluation_id__in=[one.pk for one in found])
    return TaskOutcomes(
        rule,
        {
            pk: {name: by_rule(outcome, rule) for name, outcome in results.items()}
            for pk, results in rows.values_list("evaluation_id", "results")
        },
    )


def by_rule(outcome: Outcome, rule: SuccessRule) -> Outcome:
    """A task's stored result with the successes of this rule; as it was where no limit was counted."""
    won, samples, group, *at_limit = outcome
    if rule is SuccessRule.STATE or not at_limit:
        return outcome
    return won - at_limit[0], samples, group, at_limit[0]


def at_limit(outcome: Outcome) -> int:
    """Successes that a limit ended; 0 where they were not counted."""
    return outcome[3] if len(outcome) > 3 else 0


def p_of_change(before: Evaluation, after: Evaluation) -> float | None:
    """Of the paired test over the tasks that both have, by their common rule; None without one."""
    outcomes = task_outcomes([before, after])
    if not outcomes.keys() >= {before.pk, after.pk}:
        return None
    change = paired_change(outcomes[before.pk], outcomes[after.pk])
    return change.p if change else None


@dataclass(frozen=True, slots=True)
class SuccessChange:
    """What happened to success between two points."""

    before: SuccessPair
    after: SuccessPair
    sampled: PairedChange | None
    """None without results by task of both."""
    greedy: PairedChange | None
    rule: SuccessRule
    """By which successes are counted."""

    @property
    def sampled_points(self) -> float | None:
        """Rise of sampled success, in percentage points."""
        return self._points(self.before.sampled, self.after.sampled)

    @property
    def greedy_points(self) -> float | None:
        return self._points(self.before.greedy, self.after.greedy)

    def _points(self, before: Evaluation | None, after: Evaluation | None) -> float | None:
        if not (before and after):
            return None
        return (after.by(self.rule).value - before.by(self.rule).value) * 100

    @property
    def differences(self) -> list[str]:
        """Between what measured both ends, in words."""
        ends = ((self.before.sampled, self.after.sampled), (self.before.greedy, self.after.greedy))
        found = [stamp_differences(one.eye_test, other.eye_test) for one, other in ends if one and other]
        return list(dict.fromkeys(words for differences in found for words in differences))

    @property
    def parts(self) -> list[tuple[str, PairedChange]]:
        """Those with results by task, greedy first: it is the stronger evidence."""
        both = (("Greedy", self.greedy), ("Sampled", self.sampled))
        return [(kind, paired) for kind, paired in both if paired is not None]

    @property
    def is_sharpened(self) -> bool:
        """True when sampled success rose by more than 10 points and chance, and greedy success did not."""
        sampled, greedy = (paired.p if paired else None for paired in (self.sampled, self.greedy))
        return is_sharper(self.sampled_points, sampled, self.greedy_points, greedy)


def is_sharper(
    sampled_points: float | None, sampled_p: float | None, greedy_points: float | None, greedy_p: float | None
) -> bool:
    """The same of points and the p of each paired test; a p of None = there was no test."""
    if sampled_points is None or greedy_points is None or sampled_points <= 100 * SHARPENED_RISE:
        return False
    if sampled_p is not None and sampled_p > SIGNIFICANT_P:
        return False
    return greedy_points <= 0 or (greedy_p is not None and greedy_p > SIGNIFICANT_P)


def change_between(before: SuccessPair, after: SuccessPair, outcomes: TaskOutcomes) -> SuccessChange:
    """The change over the tasks that both have, by the rule of the outcomes."""

    def paired(first: Evaluation | None, last: Evaluation | None) -> PairedChange | None:
        if first is None or last is None or not outcomes.keys() >= {first.pk, last.pk}:
            return None
        return paired_change(outcomes[first.pk], outcomes[last.pk])

    return SuccessChange(
        before,
        after,
        paired(before.sampled, after.sampled),
        paired(before.greedy, after.greedy),
        outcomes.rule,
    )


def change_of_run(pairs: list[SuccessPair], rule: SuccessRule | None = None) -> SuccessChange | None:
    """From the evaluation before the first step to the newest one; None while there are not two.

    By `rule`, else by what the agent solved and ended as far as that was counted.
    """
    first = next((pair for pair in pairs if pair.either.name == "before"), None)
    if first is None or pairs[-1] is first:
        return None
    return change_between(first, pairs[-1], task_outcomes([*first.both, *pairs[-1].both], rule))
