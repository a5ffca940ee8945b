"""Writes of the gpu worker: claims, heartbeats, attempts and what follows a crash."""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.experiments.models import (
    ACTIVE_STATUSES,
    Attempt,
    AttemptStatus,
    Experiment,
    ExperimentStatus,
)
from webapp.experiments.queries.attempts import (
    crash_limit_reached,
    num_incomplete_in_a_row,
    step_to_resume_from,
)
from webapp.experiments.services.statuses import change_status, publish_status, record_incident
from webapp.fleet.models import Worker
from webapp.fleet.services.joined_silence import SILENCE
from webapp.lib.heartbeat_age import silent_for
from webapp.lib.remote_calls import OwnAttempt, gpu_host

HEARTBEAT_TIMEOUT = timedelta(seconds=15)
"""A gpu worker beats every 2 s while it holds an experiment; one of a joined host may be silent as long as
its host."""
SETTLED = {
    ExperimentStatus.CANCELLING: (ExperimentStatus.CANCELLED, "Cancelled."),
    ExperimentStatus.PAUSING: (ExperimentStatus.PAUSED, "Paused. Resume goes on from the last checkpoint."),
}
"""What people asked for -> how an experiment ends on which nothing works."""
MAX_GATHERINGS = 10
"""Attempts in a row whose hosts may be called and do not all come."""


def claim_experiment(*, experiment_id: int, attempt_number: int, worker_name: str) -> Attempt | None:
    """Take a queued experiment that was placed on this worker; None when another job has it (redelivery)."""
    try:
        with transaction.atomic():
            attempt = Attempt.objects.create(
                experiment_id=experiment_id,
                number=attempt_number,
                worker_name=worker_name,
                resumed_step=step_to_resume_from(experiment_id) if attempt_number > 1 else None,
            )
            now = timezone.now()
            # What was placed anew meanwhile may no longer have the places that this job was sent with.
            mine = Experiment.objects.filter(
                pk=experiment_id,
                status=ExperimentStatus.QUEUED,
                placed_worker=worker_name,
                dispatched_at__isnull=False,
            )
            claimed = mine.update(
                status=ExperimentStatus.STARTING,
                heartbeat_at=now,
                message=f"Starting on {worker_name}.",
                num_passed=0,
            )
            if not claimed:
                raise IntegrityError("the experiment is not queued for this worker any more")
            Experiment.objects.filter(pk=experiment_id, started_at=None).update(started_at=now)
            publish_status(experiment_id, ExperimentStatus.STARTING, f"Starting on {worker_name}.")
    except IntegrityError:
        return None
    return attempt


def beat_experiment(experiment_id: int) -> ExperimentStatus:
    """Heartbeat of the gpu worker; answers the status that people want."""
    Experiment.objects.filter(pk=experiment_id).update(heartbeat_at=timezone.now())
    return ExperimentStatus(Experiment.objects.values_list("status", flat=True).get(pk=experiment_id))


def start_attempt(
    *, attempt: Attempt, policy_url: str, policy_token: str, policy_certificate: str = ""
) -> None:
    """The policy server answers: env workers may come."""
    mine = Attempt.objects.filter(pk=attempt.pk, ended_at=None)
    if not mine.update(
        status=AttemptStatus.RUNNING,
        policy_url=policy_url,
        policy_token=policy_token,
        policy_certificate=policy_certificate,
    ):
        return  # taken back meanwhile; the worker finds out at its next heartbeat
    number = attempt.number
    message = "Running." if number == 1 else f"Running (attempt {number}), {_goes_on_from(attempt)}."
    change_status(
        attempt.experiment_id,
        ExperimentStatus.RUNNING,
        sources={ExperimentStatus.STARTING},
        message=message,
    )


def _goes_on_from(attempt: Attempt) -> str:
    step = attempt.resumed_step
    return "from the beginning" if step is None else f"from the checkpoint of step {step}"


@gpu_host.patient_request
def record_gpus_held(attempt_id: OwnAttempt, number: int) -> None:
    """How many GPUs it keeps from others until it ends."""
    Attempt.objects.filter(pk=attempt_id).update(num_gpus=number)


def end_attempt(*, attempt: Attempt, status: AttemptStatus, reason: str = "") -> None:
    Attempt.objects.filter(pk=attempt.pk).update(
        status=status, reason=reason, ended_at=timezone.now(), policy_token="", gang_secret=""
    )


@transaction.atomic
def requeue_after_crash(*, attempt: Attempt, status: AttemptStatus, reason: str, max_restarts: int) -> bool:
    """Close a crashed or lost attempt and queue the next one, or fail when there were too many."""
    end_attempt(attempt=attempt, status=status, reason=reason)
    failed = ""
    if crash_limit_reached(experiment_id=attempt.experiment_id, max_restarts=max_restarts):
        failed = f"Failed: {reason}"
        if max_restarts:
            restarts = f"{max_restarts} restart{'s' if max_restarts > 1 else ''}"
            failed = f"Failed after {restarts} without a new checkpoint. Last reason: {reason}"
    queued = f"Will resume from the last checkpoint: {reason}"
    return _go_on(attempt, f"attempt_{status}", reason, failed=failed, queued=queued)


@transaction.atomic
def requeue_stopped(*, attempt: Attempt, reason: str) -> bool:
    """Close an attempt whose worker was stopped and queue the next one, which uses up no restart."""
    end_attempt(attempt=attempt, status=AttemptStatus.PAUSED, reason=reason)
    queued = f"Will resume from the last checkpoint: {reason}"
    return _go_on(attempt, "attempt_stopped", reason, failed="", queued=queued)


@transaction.atomic
def requeue_incomplete(*, attempt: Attempt, reason: str) -> bool:
    """Close an attempt whose hosts did not all come and queue the next one, which uses up no restart; or fail
    when that happened MAX_GATHERINGS times in a row."""
    end_attempt(attempt=attempt, status=AttemptStatus.INCOMPLETE, reason=reason)
    failed = ""
    in_a_row = num_incomplete_in_a_row(attempt.experiment_id)
    if in_a_row % MAX_GATHERINGS == 0:  # who resumes it by hand gets as many again
        failed = f"Failed: its hosts were called {MAX_GATHERINGS} times in a row and did not all come. "
        failed += f"Last reason: {reason}"
    if in_a_row == attempt.number:  # it has not begun: it still begins with all its hosts
        Experiment.objects.filter(pk=attempt.experiment_id).update(placed_worker="")
    queued = f"Its hosts will be called again: {reason}"
    return _go_on(attempt, "hosts_missing", reason, failed=failed, queued=queued)


def _go_on(attempt: Attempt, kind: str, reason: str, *, failed: str, queued: str) -> bool:
    """What follows an attempt that ended unplanned: cancelled if people asked for that, failed when `failed`
    says so, else queued."""
    experiment_id = attempt.experiment_id
    record_incident(experiment_id, kind, f"Attempt {attempt.number}: {reason}")
    if change_status(
        experiment_id,
        ExperimentStatus.CANCELLED,
        sources={ExperimentStatus.CANCELLING},
        message="Cancelled.",
    ):
        return False
    if failed:
        change_status(experiment_id, ExperimentStatus.FAILED, message=failed)
        return False
    return change_status(experiment_id, ExperimentStatus.QUEUED, message=queued, dispatched_at=None)


def close_attempt(
    *, attempt: Attempt, status: AttemptStatus, reason: str, to: ExperimentStatus, message: str
) -> None:
    """End an attempt and its experiment together; what people asked for meanwhile goes first."""
    with transaction.atomic():
        end_attempt(attempt=attempt, status=status, reason=reason)
        if not change_status(attempt.experiment_id, to, message=message):
            settle_experiment(attempt.experiment_id, reason or "its attempt ended")


@transaction.atomic
def settle_experiment(experiment_id: int, reason: str) -> bool:
    """End an active experiment that no open attempt works on: as people asked, or queued again."""
    row = Experiment.objects.select_for_update().get(pk=experiment_id)
    if row.status not in ACTIVE_STATUSES or row.attempts.filter(ended_at=None).exists():
        return False
    to, message = SETTLED.get(
        ExperimentStatus(row.status),
        (ExperimentStatus.QUEUED, f"Will resume from the last checkpoint: {reason}"),
    )
    values = {"dispatched_at": None} if to == ExperimentStatus.QUEUED else {}
    return change_status(experiment_id, to, message=message, **values)


def lose_attempt(attempt: Attempt, reason: str) -> None:
    """Its worker is gone: the next one goes on from the last checkpoint."""
    limit = attempt.experiment.settings.checkpoints.max_restarts
    requeue_after_crash(attempt=attempt, status=AttemptStatus.LOST, reason=reason, max_restarts=limit)


def lose_stale_experiments() -> list[int]:
    """Take experiments back from gpu workers that stopped beating; returns their ids."""
    lost = []
    joined = Q(placed_worker__in=Worker.objects.filter(is_joined=True).values("name"))
    silent = (~joined & silent_for(HEARTBEAT_TIMEOUT)) | (joined & silent_for(SILENCE.limit()))
    for experiment in Experiment.objects.filter(silent, status__in=ACTIVE_STATUSES):
        attempt = experiment.attempts.filter(ended_at=None).order_by("-number").first()
        if attempt is None:
            settle_experiment(experiment.pk, "no attempt works on it")
            continue
        lose_attempt(attempt, f"gpu worker {attempt.worker_name} stopped answering")
        lost.append(experiment.pk)
    return lost
