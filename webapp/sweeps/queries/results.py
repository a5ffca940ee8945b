"""What came of a sweep's arms: curves, their spread over seeds, means with intervals, the best arm."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from training.contracts.number_text import short_text
from training.statistics.share_interval import wilson_interval
from training.statistics.student_t import mean_interval
from webapp.analysis.series.metric_series import LAST_SHARE, ROWS_AT_ONCE
from webapp.experiments.models import (
    ArmStatus,
    Evaluation,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Sweep,
    SweepArm,
)
from webapp.experiments.models.results import COMPLETE
from webapp.experiments.sweep_plan import GREEDY, SAMPLED, SweepPlan
from webapp.sweeps.queries.sample_counts import Samples, samples_of

LAST_STEPS = 5
"""The least number of them, as far as they are the later half."""
Curve = dict[int, float]
"""step -> value"""


@dataclass
class ArmResult:
    """An arm, its experiments, and what its metric did; worked out once, when it is asked for."""

    arm: SweepArm
    experiments: list[Experiment]
    curves: list[Curve]
    """Of each experiment, in the same order."""
    plan: SweepPlan
    samples: dict[int, Samples] = field(default_factory=dict)
    """experiment id -> what its value is counted over."""

    @property
    def sign(self) -> int:
        return 1 if self.plan.direction == "maximise" else -1

    @cached_property
    def _finished(self) -> list[tuple[Experiment, Curve]]:
        pairs = zip(self.experiments, self.curves, strict=True)
        return [(one, curve) for one, curve in pairs if one.status == ExperimentStatus.FINISHED and curve]

    @cached_property
    def seed_values(self) -> list[float]:
        """The metric of every seed that finished."""
        found = (last_value(curve, self.plan.metric) for _, curve in self._finished)
        return [value for value in found if value is not None]

    @cached_property
    def start(self) -> float | None:
        """Mean over the same seeds of where they began; None where one has a single point."""
        if not self._finished or any(len(curve) < 2 for _, curve in self._finished):
            return None
        return fmean(first_value(curve, self.plan.metric) for _, curve in self._finished)

    @property
    def has_moved(self) -> bool:
        """It ended better than it began, as far as that is known."""
        return self.start is None or self.mean is None or self.sign * (self.mean - self.start) > 0

    @cached_property
    def num_samples(self) -> int:
        """Trajectories behind its mean; 0 where they are not counted."""
        return sum(self.samples[one.pk].num for one, _ in self._finished if one.pk in self.samples)

    @cached_property
    def binomial(self) -> tuple[float, float] | None:
        """95 % interval of the share over all samples (Wilson): what chance does within the evaluations."""
        found = [self.samples[one.pk] for one, _ in self._finished if one.pk in self.samples]
        wins = [one.num_success for one in found if one.num_success is not None]
        return wilson_interval(sum(wins), self.num_samples) if wins and len(wins) == len(found) else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """What it is compared with others by: over seeds where there are several, else of the evaluation."""
        return self.interval or self.binomial

    @cached_property
    def mean(self) -> float | None:
        return fmean(values) if (values := self.seed_values) else None

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean over seeds (Student's t), of a share within 0 and 1; None with fewer than
        two, and when all agree: then nothing says how far others would lie apart."""
        values = self.seed_values
        if len(set(values)) < 2:
            return None
        low, high = mean_interval(values)
        return (low, high) if self.binomial is None else (max(low, 0.0), min(high, 1.0))

    @cached_property
    def mean_curve(self) -> Curve:
        """Mean over the seeds that have a value at the step."""
        return {step: fmean(values) for step, values in self.by_step().items()}

    def by_step(self) -> dict[int, list[float]]:
        found: dict[int, list[float]] = defaultdict(list)
        for curve in self.curves:
            for step, value in curve.items():
                found[step].append(value)
        return dict(sorted(found.items()))

    @property
    def shown_values(self) -> list[tuple[str, str]]:
        """(knob without its section, value) of every axis."""
        return [(path.rpartition(".")[2], _short(value)) for path, value in self.arm.values.items()]

    @property
    def words(self) -> str:
        """Its values in one line."""
        return ", ".join(f"{name} {value}" for name, value in self.shown_values) or "the config as it is"


def _short(value: object) -> str:
    return short_text(value) if isinstance(value, float) else str(value)


def last_value(curve: Curve, metric: str) -> float | None:
    """What a seed is judged by: the last evaluation, or the mean of a series' last tenth."""
    return fmean(curve[step] for step in last_steps(curve, metric)) if curve else None


def last_steps(curve: Curve, metric: str) -> list[int]:
    """The steps whose mean judges a seed."""
    return sorted(curve)[-_window(curve, metric) :]


def first_value(curve: Curve, metric: str) -> float:
    """Where it began: the first evaluation, or the mean of as many first steps as judge its end."""
    return fmean(curve[step] for step in sorted(curve)[: _window(curve, metric)])


def _window(curve: Curve, metric: str) -> int:
    if metric in (GREEDY, SAMPLED):
        return 1
    return max(1, round(LAST_SHARE * len(curve)), min(LAST_STEPS, len(curve) // 2))


def results_of(sweep: Sweep) -> list[ArmResult]:
    """Every arm with its experiments, their curves and what they are counted over: four queries."""
    by_arm: dict[int, list[Experiment]] = defaultdict(list)
    found = Experiment.objects.filter(arm__sweep=sweep).order_by("id").defer("config", "note")
    for experiment in found:
        by_arm[experiment.arm_id or 0].append(experiment)
    curves = curves_of([experiment.pk for experiment in found], sweep.plan.metric)
    samples = samples_of(
        sweep.plan, {pk: last_steps(curve, sweep.plan.metric) for pk, curve in curves.items() if curve}
    )
    return [
        ArmResult(
            arm, by_arm[arm.pk], [curves.get(one.pk, {}) for one in by_arm[arm.pk]], sweep.plan, samples
        )
        for arm in sweep.arms.all()
    ]


def curves_of(experiment_ids: Sequence[int], metric: str) -> dict[int, Curve]:
    """experiment id -> the metric by step; one query."""
    found: dict[int, Curve] = defaultdict(dict)
    rows: Iterable[tuple[int, int, float]]
    if metric in (GREEDY, SAMPLED):
        complete = Evaluation.objects.filter(COMPLETE, experiment_id__in=experiment_ids)
        evaluations = complete.defer("eyes").order_by("id")
        greedy = evaluations.filter(temperature=0)
        chosen = greedy if metric == GREEDY else evaluations.exclude(temperature=0)
        rows = ((one.experiment_id, one.step, one.shown.value) for one in chosen)
    else:
        points = MetricPoint.objects.filter(experiment_id__in=experiment_ids, name=metric)
        rows = points.values_list("experiment_id", "step", "value").iterator(ROWS_AT_ONCE)
    for experiment_id, step, value in rows:
        if math.isfinite(value):
            found[experiment_id][step] = value
    return dict(found)


def measured_by(results: Sequence[ArmResult], plan: SweepPlan) -> list[Evaluation]:
    """The newest evaluation of each seed, where the arms are judged by those; one query."""
    if plan.metric not in (GREEDY, SAMPLED):
        return []
    seeds = [one.pk for result in results for one in result.experiments]
    rows = Evaluation.objects.filter(COMPLETE, experiment_id__in=seeds).order_by("experiment_id", "id")
    chosen = rows.filter(temperature=0) if plan.metric == GREEDY else rows.exclude(temperature=0)
    return list({one.experiment_id: one for one in chosen}.values())


@dataclass(frozen=True, slots=True)
class Best:
    """The best finished arm, and what else could be it by chance."""

    result: ArmResult
    rivals: list[ArmResult] = field(default_factory=list)
    """Arms that moved and whose interval overlaps its own, or is unknown as its own may be."""

    @property
    def equals(self) -> list[ArmResult]:
        """The rivals that did just as well."""
        return [rival for rival in self.rivals if rival.mean == self.result.mean]

    @property
    def all(self) -> list[ArmResult]:
        """All that did best, with their values."""
        return sorted([self.result, *self.equals], key=lambda one: one.arm.number)

    @property
    def others(self) -> list[ArmResult]:
        """Those that did worse, and may be as good all the same."""
        return [rival for rival in self.rivals if rival.mean != self.result.mean]


def best_of(results: Sequence[ArmResult], plan: SweepPlan) -> Best | None:
    """None until an arm has finished that is better than where it began."""
    done = [one for one in ended_of(results) if one.has_moved]
    if not done:
        return None
    best = max(done, key=lambda one: one.sign * (one.mean or 0.0))
    own = best.spread
    rivals = [
        other
        for other in done
        if other is not best and (own is None or other.spread is None or _overlap(own, other.spread))
    ]
    return Best(best, rivals)


def ended_of(results: Sequence[ArmResult]) -> list[ArmResult]:
    """Finished arms that were measured."""
    return [one for one in results if one.arm.status == ArmStatus.FINISHED and one.mean is not None]


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
