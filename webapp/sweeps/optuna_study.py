"""The search itself, by Optuna: which values come next, and which arm is hopeless.

Our rows are the study: it is built from them whenever it is asked, so no second store can disagree with what
the pages show (ADR 28). Optuna takes a second to import, so only those who ask load it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webapp.experiments.models import ArmStatus
from webapp.experiments.sweep_plan import Axis, Scalar, SweepPlan

if TYPE_CHECKING:
    import optuna

MIN_FINISHED = 2
"""Arms that must have finished before one is compared with them."""
MIN_RANDOM = 4
"""Arms of tpe that are random at least, before it has anything to learn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """What the search knows of an arm."""

    number: int
    status: ArmStatus
    values: Mapping[str, Scalar]
    sampler_notes: Mapping[str, Any] = field(default_factory=dict)
    objective: float | None = None
    curve: Mapping[int, float] = field(default_factory=dict)
    """step -> mean over the seeds that have reached it"""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The values of the next arm, and what the sampler wants kept with it."""

    values: dict[str, Scalar]
    sampler_notes: dict[str, Any]


def suggest(plan: SweepPlan, trials: Sequence[TrialFacts]) -> Suggestion:
    """Values for the arm after `trials`."""
    study = _study(plan, trials)
    space = {axis.path: _distribution(axis) for axis in plan.axes}
    trial = study.ask(space)
    values = {path: trial.params[path] for path in space}
    return Suggestion(values, dict(study.trials[-1].system_attrs))


def is_hopeless(plan: SweepPlan, trials: Sequence[TrialFacts], number: int) -> bool:
    """True when arm `number` was never as good as half of the finished arms were at its newest step."""
    if not plan.stop_hopeless:
        return False
    study = _study(plan, trials)
    place = [trial.number for trial in trials].index(number)
    return study.pruner.prune(study, study.trials[place])


def _study(plan: SweepPlan, trials: Sequence[TrialFacts]) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize" if plan.direction == "maximise" else "minimize",
        sampler=_sampler(plan, len(trials)),
        pruner=_pruner(plan),
    )
    for facts in trials:
        study.add_trial(_trial(plan, facts))
    return study


def _sampler(plan: SweepPlan, num_trials: int) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    if plan.search == "grid":
        return samplers.GridSampler({axis.path: list(axis.values) for axis in plan.axes}, seed=plan.seed)
    # Built anew for every arm: with one seed for all, each would get the values of the first.
    seed = plan.seed * 100_003 + num_trials
    if plan.search == "random":
        return samplers.RandomSampler(seed=seed)
    num_random = max(MIN_RANDOM, plan.num_arms // 4)
    return samplers.TPESampler(seed=seed, n_startup_trials=num_random, constant_liar=True)


def _pruner(plan: SweepPlan) -> optuna.pruners.BasePruner:
    from optuna import pruners

    return pruners.MedianPruner(n_startup_trials=MIN_FINISHED, n_warmup_steps=plan.warmup_steps)


def _trial(plan: SweepPlan, facts: TrialFacts) -> optuna.trial.FrozenTrial:
    from optuna.trial import create_trial

    state = _state(facts)
    return create_trial(
        state=state,
        value=facts.objective if state.name == "COMPLETE" else None,
        params=dict(facts.values),
        distributions={axis.path: _distribution(axis) for axis in plan.axes},
        system_attrs=dict(facts.sampler_notes),
        intermediate_values=dict(facts.curve),
    )


def _state(facts: TrialFacts) -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    if facts.status == ArmStatus.RUNNING:
        return TrialState.RUNNING
    if facts.status == ArmStatus.STOPPED:
        return TrialState.PRUNED
    return TrialState.FAIL if facts.objective is None else TrialState.COMPLETE


def _distribution(axis: Axis) -> optuna.distributions.BaseDistribution:
    from optuna import distributions

    if not axis.is_range:
        return distributions.CategoricalDistribution(axis.values)
    low, high = axis.ends
    if axis.whole:
        return distributions.IntDistribution(int(low), int(high), log=axis.log)
    return distributions.FloatDistribution(low, high, log=axis.log)
