"""When trouble began, seen from the optimiser: before its first update, or by the weights that it made."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy import special

from webapp.analysis.series.metric_series import whole_series
from webapp.experiments.models import AlarmRecord, Experiment

SUCCESS, GRADIENT = "rollout/success", "optimiser/grad_norm"
WINDOW = 3
"""Steps whose mean is a level of success: one step is noise."""
CHANCE = 1e-3
"""Rollouts that are this unlikely at the best level have fallen from it."""
STREAKS = {"all_zero_rewards": 3, "settled": 3}
"""Guards that fire after several steps in a row: it began with the first of them."""

Points = Sequence[tuple[int, float]]
"""(step, value) of a series, in order."""


@dataclass(frozen=True, slots=True)
class Onset:
    """The step in whose rollouts it is first seen."""

    step: int
    num_updates: int
    """Updates of the weights before these rollouts; 0 = the optimiser cannot have caused it."""

    @property
    def is_of_the_start(self) -> bool:
        """True when the run began so."""
        return self.num_updates == 0


def onset_of_alarm(alarm: AlarmRecord) -> Onset:
    """Of what the alarm is about; its rollouts are of the weights after the step before."""
    streak = STREAKS.get(alarm.name, 1)
    if alarm.name == "no_update":
        streak = alarm.experiment.settings.alarms.steps_without_update
    step = max(1, alarm.since_step - streak + 1)
    return onset_at(alarm.experiment, step)


def onset_at(experiment: Experiment, step: int) -> Onset:
    """A step whose gradient was not finite, or had nothing to learn from, made no update."""
    made = experiment.metrics.filter(name=GRADIENT, step__lt=step, value__gt=0)
    return Onset(step, made.count())


def fall_of_success(experiment: Experiment) -> int | None:
    """The step from which the success of rollouts stayed far below its best; None without one."""
    line = whole_series(experiment, [SUCCESS])[SUCCESS]
    algorithm = experiment.settings.algorithm
    size = algorithm.groups_per_step * algorithm.group_size
    return fall_in([(int(step), value) for step, value in zip(line["x"], line["y"], strict=True)], size)


def fall_in(success: Points, rollouts_per_step: int) -> int | None:
    """The first step of an end that stays at most half of the best WINDOW steps, and not by chance."""
    values = [value for _, value in success]
    best = max(
        (fmean(values[place : place + WINDOW]) for place in range(len(values) - WINDOW + 1)), default=0.0
    )
    first = len(values)
    while first and values[first - 1] <= best / 2:
        first -= 1
    tail = values[first:]
    if not best or len(tail) < WINDOW:
        return None
    won = round(sum(tail) * rollouts_per_step)
    chance = special.bdtr(won, rollouts_per_step * len(tail), best)  # of the binomial distribution, to `won`
    return success[first][0] if chance < CHANCE else None
