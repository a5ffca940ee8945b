"""Attempts at experiments, as the gpu workers that hold them claim, start and end them."""

from dataclasses import dataclass, field

from training.contracts.config import ConfigError, ExperimentConfig
from webapp.dispatcher.services.waiting_trajectories import fill_free_slots
from webapp.experiments.installation_limits import require_runnable
from webapp.experiments.models import Attempt, AttemptStatus
from webapp.experiments.models import ExperimentStatus as ExperimentStatus
from webapp.experiments.pinned_models import with_models as with_models
from webapp.experiments.placement.pool import Share
from webapp.experiments.services import attempts
from webapp.experiments.services.attempts import record_gpus_held as record_gpus_held
from webapp.experiments.services.stored_config import pin_models, record_config
from webapp.experiments.services.waits import tell_disk_wait as tell_disk_wait
from webapp.experiments.services.waits import tell_start as tell_start
from webapp.lib.remote_calls import (
    GangAttempt,
    NotYours,
    OwnAttempt,
    OwnWorker,
    TeamExperiment,
    caller,
    gpu_host,
)
from webapp.trajectories.services import groups
from webapp.worker_door.policy_tokens import ended_hosts

STOP_TEXTS = {
    ExperimentStatus.CANCELLING: (AttemptStatus.CANCELLED, ExperimentStatus.CANCELLED, "Cancelled."),
    ExperimentStatus.PAUSING: (
        AttemptStatus.PAUSED,
        ExperimentStatus.PAUSED,
        "Paused; the gpu worker is free. Resume goes on from the last checkpoint.",
    ),
}
"""What people asked for -> how the attempt and its experiment end."""


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """What a gpu worker has to know of an attempt."""

    pk: int
    experiment_id: int
    number: int
    places: tuple[str, ...] = ()
    """Keys of the GPUs, or places of a host without any, that it was placed on."""
    members: tuple[Share, ...] = ()
    """The other hosts, in the order of their ranks."""
    gang_secret: str = ""
    """What the first host of its gang wrote in the folder of checkpoints."""


@dataclass(frozen=True, slots=True)
class RunnableConfig:
    """The config that an attempt may begin with now, or why none."""

    config: ExperimentConfig | None
    problems: dict[str, str] = field(default_factory=dict)
    """Dotted field -> what to do."""


@dataclass(frozen=True, slots=True)
class AttemptNow:
    """What a heartbeat answers."""

    is_current: bool
    """False once it was taken back: its worker had been silent for too long."""
    status: ExperimentStatus
    """What people want of its experiment."""
    ended_hosts: dict[str, int] = field(default_factory=dict)
    """For its policy server: host -> moment (ms since the epoch) before which its tokens were made."""


def has_crashed(experiment_id: int, number: int) -> bool:
    """Whether an attempt ended otherwise than as planned; False where it was never begun."""
    bad = (AttemptStatus.CRASHED, AttemptStatus.LOST)
    return Attempt.objects.filter(experiment_id=experiment_id, number=number, status__in=bad).exists()


def attempt_of(attempt_id: int) -> Attempt:
    """The row with its experiment and team. Raises Attempt.DoesNotExist."""
    return Attempt.objects.select_related("experiment__team").get(pk=attempt_id)


def held(row: Attempt) -> HeldAttempt:
    """The columns that travel."""
    return HeldAttempt(
        pk=row.pk,
        experiment_id=row.experiment_id,
        number=row.number,
        places=tuple(row.experiment.placed_keys),
        members=tuple(Share(one["worker"], tuple(one["keys"])) for one in row.experiment.placed_members),
        gang_secret=row.gang_secret,
    )


@gpu_host.patient_request
def claim_attempt(experiment_id: TeamExperiment, number: int, worker_name: OwnWorker) -> HeldAttempt | None:
    """Take a queued experiment that was placed on this worker; None when another job has it (redelivery)."""
    row = attempts.claim_experiment(
        experiment_id=experiment_id, attempt_number=number, worker_name=worker_name
    ) or _claimed_before(experiment_id, number, worker_name)
    if row is None:
        return None
    groups.cancel_groups_of(experiment_id=experiment_id, before_attempt=number)
    return held(attempt_of(row.pk))


def _claimed_before(experiment_id: int, number: int, worker_name: str) -> Attempt | None:
    """Of a joined host that did not get the answer; what its process runs already it does not claim again."""
    if not caller.get():
        return None
    claimed = Attempt.objects.filter(status=AttemptStatus.CLAIMED, ended_at=None, worker_name=worker_name)
    return claimed.filter(experiment_id=experiment_id, number=number).first()


@gpu_host.patient_request
def runnable_config(attempt_id: GangAttempt) -> RunnableConfig:
    """With folders for checkpoints' names, and commits of the hub that the server knows."""
    experiment = attempt_of(attempt_id).experiment
    try:
        return RunnableConfig(pin_models(experiment, require_runnable(experiment)))
    except ConfigError as error:
        return RunnableConfig(None, error.problems)


@gpu_host.patient_request
def record_pinned(attempt_id: OwnAttempt, model: str, reference: str) -> None:
    """Commits of the hub that the attempt's own host knows."""
    experiment = attempt_of(attempt_id).experiment
    record_config(experiment, with_models(experiment.settings, model, reference))


@gpu_host.request
def beat_attempt(attempt_id: OwnAttempt) -> AttemptNow:
    """Its worker is alive."""
    row = attempt_of(attempt_id)
    if row.ended_at is not None:
        return AttemptNow(False, ExperimentStatus(row.experiment.status))
    return AttemptNow(True, attempts.beat_experiment(row.experiment_id), ended_hosts())


@gpu_host.patient_request
def is_current(attempt_id: GangAttempt) -> bool:
    """False once it has ended where it runs."""
    return attempt_of(attempt_id).ended_at is None


@gpu_host.patient_request
def start_attempt(
    attempt_id: OwnAttempt, policy_url: str, policy_token: str, policy_certificate: str
) -> None:
    """The policy server answers: env workers may come.

    They show it screenshots: a joined host's is reached by https, and by its own certificate only.
    """
    row = attempt_of(attempt_id)
    if caller.get() and not (policy_url.startswith("https://") and policy_certificate):
        raise NotYours(f"policy_url: {policy_url} is not https with a certificate of its own")
    attempts.start_attempt(
        attempt=row,
        policy_url=policy_url,
        policy_token=policy_token,
        policy_certificate=policy_certificate,
    )
    fill_free_slots()


@gpu_host.report
def end_finished(attempt_id: OwnAttempt) -> None:
    if (row := _open(attempt_id)) is not None:
        attempts.close_attempt(
            attempt=row,
            status=AttemptStatus.FINISHED,
            reason="",
            to=ExperimentStatus.FINISHED,
            message="Finished.",
        )


@gpu_host.report
def end_stopped(attempt_id: OwnAttempt, reason: str) -> None:
    """Cancelled or paused, whichever the people asked for; else it goes on from where it was saved."""
    if (row := _open(attempt_id)) is None:
        return
    asked = STOP_TEXTS.get(ExperimentStatus(row.experiment.status))
    if asked is None:
        attempts.requeue_stopped(attempt=row, reason=reason)
        return
    status, to, message = asked
    attempts.close_attempt(attempt=row, status=status, reason=reason, to=to, message=message)


@gpu_host.report
def end_crashed(attempt_id: OwnAttempt, reason: str, max_restarts: int | None) -> None:
    """The next one is queued, or its experiment fails when there were too many; None: as its config says."""
    if (row := _open(attempt_id)) is not None:
        _requeue(row, reason, max_restarts)


@gpu_host.report
def end_incomplete(attempt_id: OwnAttempt, reason: str) -> None:
    """Its hosts did not all come: they are called again, and no restart is used up."""
    if (row := _open(attempt_id)) is not None:
        attempts.requeue_incomplete(attempt=row, reason=reason)


@gpu_host.report
def cancel_groups(attempt_id: OwnAttempt, up_to_own: bool) -> None:
    """All that its experiment still samples; `up_to_own`: not what a later attempt asked for."""
    row = attempt_of(attempt_id)
    before = row.number + 1 if up_to_own else None
    groups.cancel_groups_of(experiment_id=row.experiment_id, before_attempt=before)


def _open(attempt_id: int) -> Attempt | None:
    row = attempt_of(attempt_id)
    return row if row.ended_at is None else None


def _requeue(row: Attempt, reason: str, max_restarts: int | None) -> None:
    limit = row.experiment.settings.checkpoints.max_restarts if max_restarts is None else max_restarts
    attempts.requeue_after_crash(attempt=row, status=AttemptStatus.CRASHED, reason=reason, max_restarts=limit)
