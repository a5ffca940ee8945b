"""What people do to sweeps: launch, cancel, pause, resume."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from training.contracts.config import ConfigError, ExperimentConfig
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.installation_limits import require_allowed
from webapp.experiments.models import (
    FINAL_STATUSES,
    ArmStatus,
    Experiment,
    ExperimentStatus,
    Sweep,
    SweepStatus,
)
from webapp.experiments.pinned_models import with_pinned_models
from webapp.experiments.pinned_tasks import with_pinned_tasks
from webapp.experiments.services.experiments import (
    request_cancel,
    request_pause,
    resume_experiment,
)
from webapp.experiments.sweep_plan import SweepPlan
from webapp.sweeps.search_space import plan_problems
from webapp.sweeps.services.arms import advance_sweep, change_sweep_status, close_arm


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
    advance_sweep(sweep)
    return sweep


@transaction.atomic
def cancel_sweep(*, sweep: Sweep, user: User | None = None) -> bool:
    """End the whole: waiting experiments at once, running ones at their next safe point."""
    if not change_sweep_status(sweep, SweepStatus.CANCELLED, f"Cancelled{_by(user)}."):
        return False
    for arm in sweep.arms.filter(status=ArmStatus.RUNNING):
        close_arm(arm, ArmStatus.CANCELLED)
    for experiment in _unfinished(sweep):
        request_cancel(experiment=experiment, user=user)
    _record(AuditAction.CANCELLED, sweep, user)
    return True


@transaction.atomic
def pause_sweep(*, sweep: Sweep, user: User | None = None) -> bool:
    """Begin no arm any more; what runs saves a checkpoint and gives its gpu worker back."""
    if not change_sweep_status(sweep, SweepStatus.PAUSED, f"Paused{_by(user)}."):
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
    if not change_sweep_status(sweep, SweepStatus.RUNNING, f"Resumed{_by(user)}."):
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
