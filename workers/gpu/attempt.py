"""One attempt at one experiment:

claim -> coordinator up -> policy server up -> trainer -> supervise -> close the attempt.

The job supervises, it does not train. Whatever happens to a child, and whatever people
ask for meanwhile, the attempt is closed exactly once and every child group is ended.
"""

import logging
import time
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections
from pydantic import ValidationError

from training.contracts.config import ConfigError, ExperimentConfig, to_yaml
from training.contracts.trainer_exit import ExitCode, TrainerOutcome
from training.contracts.trainer_state import checkpoints_folder
from training.log_lines import log_about
from webapp.lib.disk_room import shortages
from webapp.lib.outage_retries import patiently
from webapp.worker_door.attempts import (
    ExperimentStatus,
    HeldAttempt,
    beat_attempt,
    cancel_groups,
    claim_attempt,
    end_crashed,
    end_finished,
    end_incomplete,
    end_stopped,
    record_gpus_held,
    start_attempt,
    tell_start,
)
from webapp.worker_door.checkpoint_copies_and_exports import CheckpointElsewhere
from webapp.worker_door.gpu_hosts import LogName
from workers import identity, stopping
from workers.gpu.coordinator.handler_contract import AttemptContext
from workers.gpu.coordinator.server import CoordinatorServer
from workers.gpu.experiment_folders import experiment_folder, output_folder
from workers.gpu.experiment_heartbeat import Heartbeat
from workers.gpu.failure_reason import how_it_ended, waited_for_hosts, why_trainer_ended
from workers.gpu.fetched_checkpoints import bring_checkpoint, bring_model
from workers.gpu.gang import GangBroken, HostsMissing, gather, why_broken
from workers.gpu.gpu_placement import TooFewGpus, placed_gpus, trainer_and_engine
from workers.gpu.gpu_use import GpuWatch, own_gpus
from workers.gpu.log_reporter import LogReporter
from workers.gpu.model_folder import ModelNotFound
from workers.gpu.policy_server_process import PolicyServer, PolicyServerError
from workers.gpu.resolved_config import allowed_config, with_folders
from workers.gpu.trainer_process import LOG_TAIL_LINES, start_trainer
from workers.processes.logged_process import LoggedProcess
from workers.reports.current import reports

log = logging.getLogger(__name__)
TICK_S = 0.2
BEAT_EVERY_S = 2.0
STOPPING = (ExperimentStatus.CANCELLING, ExperimentStatus.PAUSING)
STOPPED = "the gpu worker was stopped"
CANCEL_GRACE_S = 45.0
"""After a cancel request the trainer gets this long to leave by itself."""


class AttemptStopped(Exception):
    """Raised while starting when people cancelled or paused meanwhile."""


class AttemptTakenBack(Exception):
    """Raised when the attempt was taken back as lost: the next one goes on from its checkpoints."""


def run(experiment_id: int, attempt_number: int) -> None:
    """Body of the gpu job; a redelivered job finds the claim and steps aside."""
    with log_about(experiment_id=experiment_id):
        _run(experiment_id, attempt_number)


def _run(experiment_id: int, attempt_number: int) -> None:
    attempt = reports().request(claim_attempt, experiment_id, attempt_number, identity.current().name)
    if attempt is None:
        log.info("experiment %s attempt %s is taken or gone; stepping aside", experiment_id, attempt_number)
        return
    was_taken_back = False
    try:
        with Heartbeat(attempt):
            config = allowed_config(attempt)
            _bring_checkpoint(attempt, config)
            Supervision(attempt, config).run()
    except AttemptTakenBack:
        log.warning("attempt %s of experiment %s was taken back; leaving it", attempt_number, experiment_id)
        was_taken_back = True
    except AttemptStopped as reason:
        reports().report(end_stopped, attempt.pk, str(reason))
    except ConfigError as error:
        reports().report(end_crashed, attempt.pk, f"not allowed here any more: {error}", max_restarts=0)
    except (ModelNotFound, CheckpointElsewhere) as error:
        # Trying again cannot help: a wrong path, or a checkpoint that is gone or on another host.
        reports().report(end_crashed, attempt.pk, str(error), max_restarts=0)
    except HostsMissing as error:
        reports().report(end_incomplete, attempt.pk, str(error))
    except (TooFewGpus, GangBroken, PolicyServerError, OSError) as error:
        if stopping.is_wanted():  # a scheduler signals all processes of a job, and children may go first
            reports().report(end_stopped, attempt.pk, STOPPED)
        else:
            reports().report(end_crashed, attempt.pk, str(error), None)
    except Exception as error:
        log.exception("attempt %s of experiment %s broke", attempt_number, experiment_id)
        reports().report(end_crashed, attempt.pk, f"gpu worker error: {error!r}", None)
        raise
    finally:
        reports().report(cancel_groups, attempt.pk, up_to_own=was_taken_back)


def _bring_checkpoint(attempt: HeldAttempt, config: ExperimentConfig) -> None:
    """Have what it resumes from here before anything starts; people may stop that."""

    def keep_going() -> None:
        if patiently(reports().request, beat_attempt, attempt.pk).status in STOPPING:
            raise AttemptStopped("stopped while fetching its checkpoint")

    output = output_folder(attempt.experiment_id)
    bring_checkpoint(attempt, checkpoints_folder(config.checkpoints.directory, output), keep_going)


class Supervision:
    """Starts and watches the children of one attempt."""

    def __init__(self, attempt: HeldAttempt, config: ExperimentConfig) -> None:
        self._attempt = attempt
        self._config = config
        self._folder = experiment_folder(attempt.experiment_id)
        self._logs = self._folder / "logs"
        self._output = output_folder(attempt.experiment_id)
        self._model = bring_model(config.model.path, config.optimiser.seed)
        self._beat_due = 0.0
        self._cancel_by: float | None = None
        self._ended_hosts: dict[str, int] = {}

    def run(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        config_path = self._folder / "config.yaml"
        config_path.write_text(to_yaml(with_folders(self._config, self._model)))
        gpus = placed_gpus(self._attempt.places)
        trainer_gpus, engine_gpus = trainer_and_engine(self._config, gpus)
        reports().request(record_gpus_held, self._attempt.pk, len(gpus) * (1 + len(self._attempt.members)))
        with ExitStack() as stack:
            logs: dict[LogName, Path] = {name: self._log_path(name) for name in ("policy", "trainer")}
            stack.enter_context(LogReporter(self._attempt.pk, logs))
            policy = PolicyServer(
                model=self._model,
                config_path=config_path,
                folder=self._folder,
                log_path=self._log_path("policy"),
                gpus=engine_gpus,
                attempt=self._attempt.number,
            )
            stack.callback(policy.child.stop, 5.0)
            coordinator = stack.enter_context(CoordinatorServer(AttemptContext(self._attempt.pk, policy)))
            stack.enter_context(GpuWatch(self._attempt.pk, own_gpus(gpus)))
            if is_colocated(self._config):
                # SGLang takes its share of what is free then: a trainer that loads meanwhile would shrink it.
                self._wait_ready(policy)
            trainer = self._start_trainer(config_path, coordinator, trainer_gpus)
            stack.callback(trainer.stop)
            self._wait_ready(policy)
            reports().request(start_attempt, self._attempt.pk, policy.url, policy.token, policy.certificate)
            self._watch(trainer, policy)

    def _log_path(self, name: str) -> Path:
        return self._logs / f"{name}-{self._attempt.number}.log"

    def _wait_ready(self, policy: PolicyServer) -> None:
        """Until the engine generates; what it does meanwhile is shown on the experiment's page."""

        def keep_going() -> None:
            if self._beat_or_stop():
                reports().report(tell_start, self._attempt.pk, f"Engine: {policy.starting}.")

        policy.wait_ready(keep_going, limit_s=self._config.engine.start_limit_s)

    def _start_trainer(
        self, config_path: Path, coordinator: CoordinatorServer, gpus: dict[str, str]
    ) -> LoggedProcess:
        TrainerOutcome.path(self._output).unlink(missing_ok=True)
        checkpoints = checkpoints_folder(self._config.checkpoints.directory, self._output)
        return start_trainer(
            self._config,
            config_path=config_path,
            output=self._output,
            log_path=self._log_path("trainer"),
            coordinator=coordinator,
            gpus=gpus,
            gang=gather(self._attempt, self._folder, checkpoints, self._beat_or_stop),
        )

    def _watch(self, trainer: LoggedProcess, policy: PolicyServer) -> None:
        """Until the trainer ends, or the policy server dies, or patience with a cancel runs out."""
        while True:
            if (code := trainer.exit_code()) is not None:
                self._close(code, trainer)
                return
            if stopping.is_wanted():
                # Time to save a checkpoint, within the grace that a stopping installation gives us.
                trainer.stop(settings.STOP_GRACE_S)
                raise AttemptStopped(STOPPED)
            if (code := policy.child.exit_code()) is not None:
                raise PolicyServerError(f"the policy server {how_it_ended(code)}:\n{policy.child.tail()}")
            status = self._beat()
            policy.end_hosts(self._ended_hosts)
            if status is not None and (broken := why_broken(self._attempt)):
                trainer.stop(settings.STOP_GRACE_S)  # a host that is being stopped gives time to save
                raise broken
            if status == ExperimentStatus.CANCELLING:
                now = time.monotonic()
                self._cancel_by = self._cancel_by or now + CANCEL_GRACE_S
                if now > self._cancel_by:
                    raise AttemptStopped("cancelled; the trainer did not leave by itself and was ended")
            time.sleep(TICK_S)

    def _beat(self) -> ExperimentStatus | None:
        if time.monotonic() < self._beat_due:
            return None
        self._beat_due = time.monotonic() + BEAT_EVERY_S
        close_old_connections()
        now = patiently(reports().request, beat_attempt, self._attempt.pk)
        if not now.is_current:
            raise AttemptTakenBack
        self._ended_hosts = now.ended_hosts
        return now.status

    def _beat_or_stop(self) -> bool:
        """True when it was time for a beat."""
        status = self._beat()
        if stopping.is_wanted():
            raise AttemptStopped(STOPPED)
        if status in STOPPING:
            raise AttemptStopped("stopped while starting")
        return status is not None

    def _close(self, code: int, trainer: LoggedProcess) -> None:
        outcome = self._outcome()
        code, message = (outcome.exit_code, outcome.message) if outcome else (code, "")
        if code == ExitCode.FINISHED:
            reports().report(end_finished, self._attempt.pk)
        elif code in (ExitCode.PAUSED, ExitCode.CANCELLED) or self._wants_stop():
            raise AttemptStopped("stopped at a safe point")
        else:
            tail, broken = trainer.tail(LOG_TAIL_LINES), why_broken(self._attempt)
            reason = message or why_trainer_ended(code, tail)
            if waited_for_hosts(tail) and (broken is None or isinstance(broken, HostsMissing)):
                raise HostsMissing(reason)
            reason = "; ".join([reason, *([str(broken)] if broken else []), *map(str, shortages())])
            reports().report(end_crashed, self._attempt.pk, reason, None)

    def _outcome(self) -> TrainerOutcome | None:
        """What the trainer left behind; None of one that was killed, or could not write it."""
        path = TrainerOutcome.path(self._output)
        try:
            return TrainerOutcome.model_validate_json(path.read_text())
        except (FileNotFoundError, ValidationError):  # a full disk leaves half a file: the log knows more
            return None

    def _wants_stop(self) -> bool:
        return patiently(reports().request, beat_attempt, self._attempt.pk).status in STOPPING


def is_colocated(config: ExperimentConfig) -> bool:
    """Whether trainer and engine share GPUs."""
    return config.engine.name == "sglang" and config.engine.placement == "colocated"
