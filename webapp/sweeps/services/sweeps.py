"""A sweep from its launch to its end: arms begin while there is room, hopeless ones stop, people steer it.

launch -> the first arms are queued -> every tick: close the ended, stop the hopeless, begin arms -> ended
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.contracts.config import ConfigError, ExperimentConfig
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
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
from webapp.experiments.pinned_models import with_pinned_models
from webapp.experiments.pinned_tasks import with_pinned_tasks
from webapp.experiments.queries.queue import MAX_PRIORITY
from webapp.experiments.services.experiments import (
    queue_experiment,
    request_cancel,
    request_pause,
    resume_experiment,
)
from webapp.experiments.sweep_plan import SweepPlan
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.sweeps import optuna_study
from webapp.sweeps.queries.results import ArmResult, results_of
from webapp.sweeps.search_space import config_of_arm, plan_problems

MAX_FAILED = 3
"""First arms that all failed end a sweep: the next ones would fail as well."""


# --- what people ask for -----------------------------------------------------------------------------


@transaction.atomic
def launch_sweep(
    *,
    team: Team,
    owner: User | None,
    name: str,
    config: ExperimentConfig,
    plan: SweepPlan,
    preset: str = "",
    priority: int = 0,
    note: str = "",
) -> Sweep:
    """Store a search and queue its first arms. Raises ConfigError for what cannot be run here."""
    if problems := dict(plan_problems(plan, config)):
        raise ConfigError(problems)
    config = with_pinned_models(config, team)
    require_allowed(config, team)
    config = with_pinned_tasks(config, team)
    sweep = Sweep.objects.create(
        team=team,
        owner=owner,
        name=name,
        preset=preset,
        note=note,
        config=config.model_dump(mode="json"),
        plan_values=plan.model_dump(mode="json"),
        priority=priority,
    )
    total = sweep.plan.num_experiments
    _record(AuditAction.LAUNCHED, sweep, owner, name=name, preset=preset, experiments=total)
    _advance(sweep)
    return sweep


@transaction.atomic
def cancel_sweep(*, sweep: Sweep, user: User | None = None) -> bool:
    """End the whole: waiting experiments at once, running ones at their next safe point."""
    if not _change_status(sweep, SweepStatus.CANCELLED, f"Cancelled{_by(user)}."):
        return False
    for arm in sweep.arms.filter(status=ArmStatus.RUNNING):
        _close(arm, ArmStatus.CANCELLED)
    for experiment in _unfinished(sweep):
        request_cancel(experiment=experiment, user=user)
    _record(AuditAction.CANCELLED, sweep, user)
    return True


@transaction.atomic
def pause_sweep(*, sweep: Sweep, user: User | None = None) -> bool:
    """Begin no arm any more; what runs saves a checkpoint and gives its gpu worker back."""
    if not _change_status(sweep, SweepStatus.PAUSED, f"Paused{_by(user)}."):
        return False
    for experiment in _unfinished(sweep):
        request_pause(experiment=experiment, user=user)
    _record(AuditAction.PAUSED, sweep, user)
    return True


@transaction.atomic
def resume_sweep(*, sweep: Sweep, user: User | None = None) -> bool:
    """Go on; False also while an experiment still saves the checkpoint of its pause."""
    if _unfinished(sweep).filter(status=ExperimentStatus.PAUSING).exists():
        return False
    if not _change_status(sweep, SweepStatus.RUNNING, f"Resumed{_by(user)}."):
        return False
    for experiment in _unfinished(sweep):
        resume_experiment(experiment=experiment, user=user)
    _record(AuditAction.RESUMED, sweep, user)
    return True


def _record(action: AuditAction, sweep: Sweep, user: User | None, **detail: object) -> None:
    log_action(action, person=user, team=sweep.team_id, kind="sweep", object_id=sweep.pk, **detail)


def _by(user: User | None) -> str:
    return f" by {user}" if user else ""


def _unfinished(sweep: Sweep) -> QuerySet[Experiment]:
    return Experiment.objects.filter(arm__sweep=sweep).exclude(status__in=FINAL_STATUSES).order_by("id")


def _change_status(sweep: Sweep, to: SweepStatus, message: str) -> bool:
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


# --- what happens by itself --------------------------------------------------------------------------


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
        return _advance(sweep)
    except ValueError as refused:  # Optuna's, of rows that it cannot read; other sweeps go on
        return _change_status(sweep, SweepStatus.FAILED, f"The search cannot go on: {refused}")


def _advance(sweep: Sweep) -> bool:
    """Close, stop, begin, end; True when something changed."""
    results = results_of(sweep)
    changed = [_close_when_over(one) for one in results]
    changed += [_stop_when_hopeless(sweep.plan, one, results) for one in results]
    failed = [one.arm for one in results if one.arm.status == ArmStatus.FAILED]
    if len(failed) == len(results) >= min(MAX_FAILED, sweep.plan.total_arms):
        message = f"All {len(failed)} arms failed. {failed[-1].message}"
        return _change_status(sweep, SweepStatus.FAILED, message)
    changed += _begin_arms(sweep, results)
    if not any(changed):
        return False
    is_running = any(one.arm.status == ArmStatus.RUNNING for one in results)
    if len(results) >= sweep.plan.total_arms and not is_running:
        _change_status(sweep, SweepStatus.FINISHED, "")
    else:
        _publish(sweep)
    return True


def _close(arm: SweepArm, to: ArmStatus, message: str = "", objective: float | None = None) -> bool:
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
        return _close(arm, ArmStatus.FINISHED, objective=result.mean)
    failed = [one for one in experiments if one.status == ExperimentStatus.FAILED]
    if failed:
        return _close(arm, ArmStatus.FAILED, f"#{failed[-1].pk}: {failed[-1].message}")
    if any(one.status == ExperimentStatus.FINISHED for one in experiments):
        return _close(arm, ArmStatus.FAILED, f"It finished, but {result.plan.metric} was never recorded.")
    return _close(arm, ArmStatus.CANCELLED)


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
    if not _close(arm, ArmStatus.STOPPED, message):
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
        _close(arm, ArmStatus.FAILED, f"This combination cannot run: {refused}")
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
