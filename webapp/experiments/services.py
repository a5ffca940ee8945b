"""Writes about experiments: the queue of record, attempts, stages, measurements.

Every change of status is one atomic claim along EXPERIMENT_TRANSITIONS, so two workers,
a redelivered job and a person clicking twice cannot both win.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

from training.config import ExperimentConfig
from training.types import Alarm, EvaluationResult
from webapp.accounts.models import Team
from webapp.experiments.models import (
    EXPERIMENT_TRANSITIONS,
    AlarmRecord,
    Attempt,
    AttemptStatus,
    CheckpointRecord,
    Evaluation,
    Experiment,
    ExperimentStatus,
    Incident,
    MetricPoint,
    Stage,
    StageStatus,
)
from webapp.fleet.models import Worker, WorkerStatus
from webapp.live.services import publish

HEARTBEAT_TIMEOUT = timedelta(seconds=15)
"""A gpu worker beats every 2 s while it holds an experiment."""


def stream_of(experiment_id: int) -> str:
    """Name of the experiment's event stream."""
    return f"experiment.{experiment_id}"


def stages_of(config: ExperimentConfig) -> list[str]:
    """Names of the stages that this config will run, in order."""
    names = ["demonstrations", "sft"] if config.sft.enabled else []
    if config.evaluation.before and config.evaluation.num_tasks:
        names.append("evaluation-before")
    names.append("grpo")
    if config.evaluation.after and config.evaluation.num_tasks:
        names.append("evaluation-after")
    return names


@transaction.atomic
def queue_experiment(
    *,
    team: Team,
    owner: AbstractBaseUser | None,
    name: str,
    config: ExperimentConfig,
    preset: str = "",
    priority: int = 0,
    note: str = "",
    cloned_from: Experiment | None = None,
) -> Experiment:
    """Add an experiment at the end of the queue."""
    last = Experiment.objects.aggregate(last=Max("queue_order"))["last"] or 0
    experiment = Experiment.objects.create(
        team=team,
        owner=owner,
        name=name,
        preset=preset,
        config=config.model_dump(mode="json"),
        priority=priority,
        note=note,
        cloned_from=cloned_from,
        queue_order=last + 1,
        message="Waiting for a free gpu worker.",
    )
    Stage.objects.bulk_create(
        Stage(experiment=experiment, name=stage, position=position)
        for position, stage in enumerate(stages_of(config))
    )
    _publish_status(experiment.pk, ExperimentStatus.QUEUED, experiment.message)
    return experiment


def change_status(
    experiment_id: int,
    to: ExperimentStatus,
    *,
    sources: set[ExperimentStatus] | None = None,
    message: str = "",
    **values: Any,
) -> bool:
    """Move an experiment along the transition table; False when somebody else moved it first."""
    allowed = {status for status, targets in EXPERIMENT_TRANSITIONS.items() if to in targets}
    if sources is not None:
        allowed &= sources
    if to.is_final():
        values.setdefault("ended_at", timezone.now())
    with transaction.atomic():
        moved = Experiment.objects.filter(pk=experiment_id, status__in=allowed).update(
            status=to, message=message, **values
        )
        if moved:
            _publish_status(experiment_id, to, message)
    return bool(moved)


def _publish_status(experiment_id: int, status: ExperimentStatus, message: str) -> None:
    payload = {"experiment": experiment_id, "status": status, "message": message[:300]}
    publish(stream_of(experiment_id), "experiment.updated", payload)
    publish("queue", "experiment.updated", payload)


# --- what people ask for -----------------------------------------------------------------------------


def request_cancel(*, experiment: Experiment, user: AbstractBaseUser | None = None) -> bool:
    """Stop it: at once when it waits, at the next safe point when it runs."""
    waiting = {ExperimentStatus.QUEUED, ExperimentStatus.PAUSED}
    by = f" by {user}" if user else ""
    if change_status(
        experiment.pk, ExperimentStatus.CANCELLED, sources=waiting, message=f"Cancelled{by} while waiting."
    ):
        return True
    return change_status(experiment.pk, ExperimentStatus.CANCELLING, message=f"Cancel requested{by}.")


def request_pause(*, experiment: Experiment, user: AbstractBaseUser | None = None) -> bool:
    """Finish the step, save a checkpoint, give the gpu worker back."""
    by = f" by {user}" if user else ""
    if change_status(
        experiment.pk,
        ExperimentStatus.PAUSED,
        sources={ExperimentStatus.QUEUED},
        message=f"Paused{by} before it started.",
    ):
        return True
    return change_status(
        experiment.pk,
        ExperimentStatus.PAUSING,
        message=f"Pause requested{by}: finishing the step and saving a checkpoint.",
    )


def resume_experiment(*, experiment: Experiment, user: AbstractBaseUser | None = None) -> bool:
    """Queue a paused or failed experiment again; it goes on from its last checkpoint."""
    by = f" by {user}" if user else ""
    return change_status(
        experiment.pk,
        ExperimentStatus.QUEUED,
        sources={ExperimentStatus.PAUSED, ExperimentStatus.FAILED},
        message=f"Resumed{by}: waiting for a free gpu worker.",
        ended_at=None,
        dispatched_at=None,
    )


def set_priority(*, experiment: Experiment, priority: int) -> None:
    """Higher runs first."""
    with transaction.atomic():
        Experiment.objects.filter(pk=experiment.pk).update(priority=priority)
        publish("queue", "queue.reordered", {"experiment": experiment.pk})


@transaction.atomic
def move_in_queue(*, experiment: Experiment, before: Experiment | None) -> None:
    """Put it directly before another waiting experiment, or at the end (before=None)."""
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED).exclude(pk=experiment.pk)
    if before is None:
        order = (waiting.aggregate(last=Max("queue_order"))["last"] or 0) + 1
    else:
        behind = before.queue_order
        ahead = waiting.filter(queue_order__lt=behind).aggregate(last=Max("queue_order"))["last"]
        order = behind - 1 if ahead is None else (ahead + behind) / 2
        Experiment.objects.filter(pk=experiment.pk).update(priority=before.priority)
    Experiment.objects.filter(pk=experiment.pk).update(queue_order=order)
    publish("queue", "queue.reordered", {"experiment": experiment.pk})


def _waiting() -> QuerySet[Experiment]:
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED)
    return waiting.order_by("-priority", "queue_order", "id")


def queue_in_order() -> list[Experiment]:
    """Waiting experiments in the order in which they will run."""
    return list(_waiting().select_related("owner"))


# --- what the gpu worker does ------------------------------------------------------------------------


def claim_experiment(*, experiment_id: int, attempt_number: int, worker_name: str) -> Attempt | None:
    """Take a queued experiment for one attempt; None when another job has it (redelivery)."""
    try:
        with transaction.atomic():
            attempt = Attempt.objects.create(
                experiment_id=experiment_id, number=attempt_number, worker_name=worker_name
            )
            now = timezone.now()
            claimed = Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.QUEUED).update(
                status=ExperimentStatus.STARTING, heartbeat_at=now, message=f"Starting on {worker_name}."
            )
            if not claimed:
                raise IntegrityError("the experiment is not queued any more")
            Experiment.objects.filter(pk=experiment_id, started_at=None).update(started_at=now)
            _publish_status(experiment_id, ExperimentStatus.STARTING, f"Starting on {worker_name}.")
    except IntegrityError:
        return None
    return attempt


def next_attempt_number(experiment_id: int) -> int:
    """Number that the next execution will carry."""
    last = Attempt.objects.filter(experiment_id=experiment_id).aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def beat_experiment(experiment_id: int) -> ExperimentStatus:
    """Heartbeat of the gpu worker; answers the status that people want."""
    Experiment.objects.filter(pk=experiment_id).update(heartbeat_at=timezone.now())
    return ExperimentStatus(Experiment.objects.values_list("status", flat=True).get(pk=experiment_id))


def start_attempt(*, attempt: Attempt, policy_url: str, policy_token: str) -> None:
    """The policy server answers: env workers may come."""
    Attempt.objects.filter(pk=attempt.pk).update(
        status=AttemptStatus.RUNNING, policy_url=policy_url, policy_token=policy_token
    )
    number = attempt.number
    message = "Running." if number == 1 else f"Running again (attempt {number}) from the last checkpoint."
    change_status(
        attempt.experiment_id,
        ExperimentStatus.RUNNING,
        sources={ExperimentStatus.STARTING},
        message=message,
    )


def end_attempt(*, attempt: Attempt, status: AttemptStatus, reason: str = "") -> None:
    """Close an attempt."""
    Attempt.objects.filter(pk=attempt.pk).update(
        status=status, reason=reason, ended_at=timezone.now(), policy_token=""
    )


def crash_limit_reached(*, experiment_id: int, max_restarts: int) -> bool:
    """True when the attempts since the last checkpoint used up the restarts."""
    newest = (
        CheckpointRecord.objects.filter(experiment_id=experiment_id).order_by("-id").values("created_at")[:1]
    )
    crashes = Attempt.objects.filter(
        experiment_id=experiment_id, status__in=[AttemptStatus.CRASHED, AttemptStatus.LOST]
    )
    since = newest[0]["created_at"] if newest else None
    if since:
        crashes = crashes.filter(ended_at__gt=since)
    return crashes.count() > max_restarts


def requeue_after_crash(*, attempt: Attempt, status: AttemptStatus, reason: str, max_restarts: int) -> bool:
    """Close a crashed or lost attempt and queue the next one, or fail when there were too many."""
    end_attempt(attempt=attempt, status=status, reason=reason)
    experiment_id = attempt.experiment_id
    tell(experiment_id, f"attempt_{status}", f"Attempt {attempt.number}: {reason}")
    if change_status(
        experiment_id,
        ExperimentStatus.CANCELLED,
        sources={ExperimentStatus.CANCELLING},
        message="Cancelled.",
    ):
        return False
    if crash_limit_reached(experiment_id=experiment_id, max_restarts=max_restarts):
        message = f"Failed after {max_restarts} restarts without a new checkpoint. Last reason: {reason}"
        change_status(experiment_id, ExperimentStatus.FAILED, message=message)
        return False
    return change_status(
        experiment_id,
        ExperimentStatus.QUEUED,
        message=f"Will resume from the last checkpoint: {reason}",
        dispatched_at=None,
    )


def lose_stale_experiments() -> list[int]:
    """Take experiments back from gpu workers that stopped beating; returns their ids."""
    limit = timezone.now() - HEARTBEAT_TIMEOUT
    active = [status for status in ExperimentStatus if status.is_active()]
    lost = []
    for experiment in Experiment.objects.filter(status__in=active, heartbeat_at__lt=limit):
        attempt = experiment.attempts.order_by("-number").first()
        if attempt is None or attempt.ended_at is not None:
            continue
        requeue_after_crash(
            attempt=attempt,
            status=AttemptStatus.LOST,
            reason=f"gpu worker {attempt.worker_name} stopped answering",
            max_restarts=ExperimentConfig.model_validate(experiment.config).checkpoints.max_restarts,
        )
        lost.append(experiment.pk)
    return lost


def tell(experiment_id: int, kind: str, message: str) -> None:
    """Record something that happened, for the experiment's page."""
    with transaction.atomic():
        Incident.objects.create(experiment_id=experiment_id, kind=kind, message=message)
        publish(stream_of(experiment_id), "incident.added", {"kind": kind, "message": message[:300]})


# --- what the trainer reports ------------------------------------------------------------------------


@transaction.atomic
def start_stage(*, experiment_id: int, name: str, total: int, unit: str) -> None:
    """A stage begins (or begins again after a restart)."""
    values = {"status": StageStatus.RUNNING, "total": total, "unit": unit, "done": 0}
    stage, created = Stage.objects.get_or_create(
        experiment_id=experiment_id,
        name=name,
        defaults={**values, "position": 50, "started_at": timezone.now()},
    )
    if not created:
        Stage.objects.filter(pk=stage.pk).update(**values)
        Stage.objects.filter(pk=stage.pk, started_at=None).update(started_at=timezone.now())
    Experiment.objects.filter(pk=experiment_id).update(stage=name)
    publish(stream_of(experiment_id), "stage.started", {"stage": name, "total": total, "unit": unit})


@transaction.atomic
def finish_stage(*, experiment_id: int, name: str) -> None:
    """A stage ended."""
    Stage.objects.filter(experiment_id=experiment_id, name=name).update(
        status=StageStatus.FINISHED, ended_at=timezone.now(), done=F("total")
    )
    publish(stream_of(experiment_id), "stage.finished", {"stage": name})


@transaction.atomic
def report_progress(*, experiment_id: int, stage: str, done: int, total: int) -> None:
    """How far the running stage is."""
    Stage.objects.filter(experiment_id=experiment_id, name=stage).update(done=done, total=total)
    publish(stream_of(experiment_id), "stage.progressed", {"stage": stage, "done": done, "total": total})


@transaction.atomic
def record_metrics(
    *, experiment_id: int, attempt: int, step: int, values: dict[str, float], policy_version: int
) -> None:
    """Store one step's values; a resumed attempt overwrites the steps that it repeats."""
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(experiment_id=experiment_id, name=name, step=step, value=value, attempt=attempt)
            for name, value in values.items()
        ],
        update_conflicts=True,
        unique_fields=["experiment", "name", "step"],
        update_fields=["value", "attempt"],
    )
    Experiment.objects.filter(pk=experiment_id).update(step=step, policy_version=policy_version)
    publish(stream_of(experiment_id), "metrics.added", {"step": step, "policy_version": policy_version})


@transaction.atomic
def record_evaluation(*, experiment_id: int, result: EvaluationResult) -> None:
    """Store an evaluation; the same one after a restart replaces the old."""
    values = result.model_dump(exclude={"name", "step"})
    Evaluation.objects.update_or_create(
        experiment_id=experiment_id, name=result.name, step=result.step, defaults=values
    )
    publish(
        stream_of(experiment_id),
        "evaluation.added",
        {"name": result.name, "step": result.step, "success": result.success, "num_tasks": result.num_tasks},
    )


@transaction.atomic
def record_checkpoint(*, experiment_id: int, path: str, values: dict[str, Any]) -> None:
    """A checkpoint is complete on disk."""
    if values.get("is_best"):
        CheckpointRecord.objects.filter(experiment_id=experiment_id).update(is_best=False)
    CheckpointRecord.objects.update_or_create(
        experiment_id=experiment_id, path=path, defaults={**values, "deleted_at": None}
    )
    publish(stream_of(experiment_id), "checkpoint.saved", {"step": values["step"], "path": path[-120:]})


@transaction.atomic
def record_checkpoint_deleted(*, experiment_id: int, path: str) -> None:
    """An old checkpoint was removed from disk."""
    CheckpointRecord.objects.filter(experiment_id=experiment_id, path=path).update(deleted_at=timezone.now())
    publish(stream_of(experiment_id), "checkpoint.deleted", {"path": path[-120:]})


@transaction.atomic
def raise_alarm(*, experiment_id: int, alarm: Alarm) -> None:
    """Show a guard that fired; repeats update the same row."""
    values = alarm.model_dump(exclude={"name"})
    repeated = AlarmRecord.objects.filter(experiment_id=experiment_id, name=alarm.name).update(
        **values, num_times=F("num_times") + 1, at=timezone.now()
    )
    if not repeated:
        AlarmRecord.objects.create(experiment_id=experiment_id, name=alarm.name, **values)
    publish(
        stream_of(experiment_id),
        "alarm.raised",
        {"name": alarm.name, "step": alarm.step, "message": alarm.message[:300]},
    )


def first_waiting() -> Experiment | None:
    """The experiment that a free gpu worker takes next."""
    return _waiting().first()


@dataclass(frozen=True)
class QueueState:
    """What decides how long a queued experiment waits; read once for a page of many."""

    num_gpu_workers: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    """In the order in which they will run."""


def queue_state() -> QueueState:
    """Three small queries."""
    active = [status for status in ExperimentStatus if status.is_active()]
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED)
    return QueueState(
        num_gpu_workers=Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).count(),
        running=tuple(Experiment.objects.filter(status__in=active).values_list("pk", flat=True)),
        waiting=tuple(waiting.order_by("-priority", "queue_order", "id").values_list("pk", flat=True)),
    )


def why_waiting(experiment: Experiment, state: QueueState | None = None) -> str:
    """Why a queued experiment does not run yet, in words."""
    if experiment.status != ExperimentStatus.QUEUED:
        return ""
    state = state or queue_state()
    if not state.num_gpu_workers:
        return "No gpu worker is online. Start one with `make up` or on a GPU host."
    # It may have left the queue since its row was read.
    ahead = state.waiting.index(experiment.pk) if experiment.pk in state.waiting else 0
    if not state.running and ahead == 0:
        return "Starts in a moment."
    parts = []
    if state.running:
        parts.append("running: " + ", ".join(f"#{pk}" for pk in state.running))
    if ahead:
        parts.append(f"{ahead} ahead in the queue")
    return f"Waits for one of {state.num_gpu_workers} gpu worker(s); " + "; ".join(parts) + "."
