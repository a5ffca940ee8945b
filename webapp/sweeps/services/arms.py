"""The arms of a sweep: the ended are closed, the hopeless stopped, the next ones begun, at every tick."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from training.contracts.config import ConfigError, ExperimentConfig
from webapp.experiments.installation_limits import require_allowed
from webapp.experiments.models import (
    ARM_TRANSITIONS,
    FINAL_STATUSES,
    MAX_NAME,
    SWEEP_TRANSITIONS,
    ArmStatus,
    Experiment,
    ExperimentStatus,
    Sweep,
    SweepArm,
    SweepStatus,
)
from webapp.experiments.queries.queue import MAX_PRIORITY
from webapp.experiments.services.experiments import (
    queue_experiment,
    request_cancel,
)
from webapp.experiments.sweep_plan import SweepPlan
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.sweeps import optuna_study
from webapp.sweeps.queries.results import ArmResult, results_of
from webapp.sweeps.search_space import config_of_arm

MAX_FAILED = 3
"""First arms that all failed end a sweep: the next ones would fail as well."""


def change_sweep_status(sweep: Sweep, to: SweepStatus, message: str) -> bool:
    """Move it along its table; False when its status has changed meanwhile."""
    is_final = not SWEEP_TRANSITIONS[to]
    rows = Sweep.objects.filter(pk=sweep.pk, status__in=sources_of(to, SWEEP_TRANSITIONS))
    moved = rows.update(status=to, message=message, ended_at=timezone.now() if is_final else None)
    if moved:
        sweep.refresh_from_db()
        _publish(sweep)
    return bool(moved)


def _publish(sweep: Sweep) -> None:
    # The queue is everybody's: no words of a team travel on it.
    publish("queue", "sweep.updated", {"sweep": sweep.pk, "status": sweep.status})


def advance_sweeps() -> list[int]:
    """Take every running sweep one step further; returns the ids of those in which something changed."""
    running = Sweep.objects.filter(status=SweepStatus.RUNNING).order_by("id")
    return [pk for pk in running.values_list("pk", flat=True) if _advance_locked(pk)]


@transaction.atomic
def _advance_locked(pk: int) -> bool:
    sweep = Sweep.objects.select_for_update().filter(pk=pk, status=SweepStatus.RUNNING).first()
    if sweep is None:
        return False
    try:
        return advance_sweep(sweep)
    except ValueError as refused:  # Optuna's, of rows that it cannot read; other sweeps go on
        return change_sweep_status(sweep, SweepStatus.FAILED, f"The search cannot go on: {refused}")


def advance_sweep(sweep: Sweep) -> bool:
    """Close, stop, begin, end; True when something changed."""
    results = results_of(sweep)
    changed = [_close_when_over(one) for one in results]
    changed += [_stop_when_hopeless(sweep.plan, one, results) for one in results]
    failed = [one.arm for one in results if one.arm.status == ArmStatus.FAILED]
    if len(failed) == len(results) >= min(MAX_FAILED, sweep.plan.total_arms):
        message = f"All {len(failed)} arms failed. {failed[-1].message}"
        return change_sweep_status(sweep, SweepStatus.FAILED, message)
    changed += _begin_arms(sweep, results)
    if not any(changed):
        return False
    is_running = any(one.arm.status == ArmStatus.RUNNING for one in results)
    if len(results) >= sweep.plan.total_arms and not is_running:
        change_sweep_status(sweep, SweepStatus.FINISHED, "")
    else:
        _publish(sweep)
    return True


def close_arm(arm: SweepArm, to: ArmStatus, message: str = "", objective: float | None = None) -> bool:
    rows = SweepArm.objects.filter(pk=arm.pk, status__in=sources_of(to, ARM_TRANSITIONS))
    if not rows.update(status=to, message=message, objective=objective, ended_at=timezone.now()):
        return False
    arm.status, arm.message, arm.objective = to, message, objective
    return True


def _close_when_over(result: ArmResult) -> bool:
    """An arm has ended when all its seeds have; what it is worth is the mean of those that finished."""
    arm, experiments = result.arm, result.experiments
    if arm.status != ArmStatus.RUNNING or any(one.status not in FINAL_STATUSES for one in experiments):
        return False
    if result.mean is not None:
        return close_arm(arm, ArmStatus.FINISHED, objective=result.mean)
    failed = [one for one in experiments if one.status == ExperimentStatus.FAILED]
    if failed:
        return close_arm(arm, ArmStatus.FAILED, f"#{failed[-1].pk}: {failed[-1].message}")
    if any(one.status == ExperimentStatus.FINISHED for one in experiments):
        return close_arm(arm, ArmStatus.FAILED, f"It finished, but {result.plan.metric} was never recorded.")
    return close_arm(arm, ArmStatus.CANCELLED)


def _stop_when_hopeless(plan: SweepPlan, result: ArmResult, results: Sequence[ArmResult]) -> bool:
    """Cancel the rest of an arm that was never as good as half of the finished ones."""
    arm, curve = result.arm, result.mean_curve
    finished = sum(one.arm.status == ArmStatus.FINISHED for one in results)
    if not plan.stop_hopeless or arm.status != ArmStatus.RUNNING or not curve:
        return False
    if finished < optuna_study.MIN_FINISHED or max(curve) < plan.warmup_steps:
        return False  # without asking Optuna, which takes its time
    if not optuna_study.is_hopeless(plan, [_facts(one) for one in results], arm.number):
        return False
    step = max(curve)
    best = (max if plan.direction == "maximise" else min)(curve.values())
    message = (
        f"Stopped at step {step}: {plan.metric} reached {best:.3g}, worse than half of the finished arms."
    )
    if not close_arm(arm, ArmStatus.STOPPED, message):
        return False
    for experiment in result.experiments:
        if experiment.status not in FINAL_STATUSES:
            request_cancel(experiment=experiment)
    return True


def _begin_arms(sweep: Sweep, results: list[ArmResult]) -> list[bool]:
    """Queue the next arms while there is room; an arm that cannot run has failed at once, with its reason."""
    begun = []
    plan = sweep.plan
    while len(results) < plan.total_arms:
        if sum(one.arm.status == ArmStatus.RUNNING for one in results) >= plan.arms_at_once:
            break
        results.append(_begin_arm(sweep, results))
        begun.append(True)
    return begun


def _begin_arm(sweep: Sweep, results: Sequence[ArmResult]) -> ArmResult:
    plan, number = sweep.plan, len(results) + 1
    found = optuna_study.suggest(plan, [_facts(one) for one in results])
    arm = SweepArm.objects.create(
        sweep=sweep, number=number, values=found.values, sampler_notes=found.sampler_notes
    )
    try:
        configs = [config_of_arm(sweep.settings, found.values, seed) for seed in range(plan.num_seeds)]
        for config in configs:
            require_allowed(config, sweep.team)
    except ConfigError as refused:
        close_arm(arm, ArmStatus.FAILED, f"This combination cannot run: {refused}")
        return ArmResult(arm, [], [], plan)
    experiments = [_queue(arm, config) for config in configs]
    return ArmResult(arm, experiments, [{} for _ in experiments], plan)


def _queue(arm: SweepArm, config: ExperimentConfig) -> Experiment:
    """One priority below what was asked for, so that single experiments of the same run first."""
    sweep = arm.sweep
    run = f" · arm {arm.number}, seed {config.optimiser.seed}"
    return queue_experiment(
        team=sweep.team,
        owner=sweep.owner,
        name=f"{sweep.name[: MAX_NAME - len(run)]}{run}",
        preset=sweep.preset,
        config=config,
        priority=max(sweep.priority - 1, -MAX_PRIORITY),
        note=sweep.note,
        origin=arm,
    )


def _facts(result: ArmResult) -> optuna_study.TrialFacts:
    arm = result.arm
    return optuna_study.TrialFacts(
        number=arm.number,
        status=ArmStatus(arm.status),
        values=arm.values,
        sampler_notes=arm.sampler_notes,
        objective=arm.objective,
        curve=result.mean_curve,
    )
