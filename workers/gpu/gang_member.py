"""This host's ranks of an experiment that another host's gpu worker supervises.

come -> model and shared folder here -> meet the others -> trainer's ranks -> until they or the attempt end

What happens to the attempt is decided where it runs: here only ranks are started, none is left behind, and
why this host left is reported.
"""

import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.db import close_old_connections

from training.contracts.config import ConfigError, to_yaml
from training.contracts.trainer_exit import PLANNED
from training.contracts.trainer_state import checkpoints_folder
from training.log_lines import log_about
from webapp.worker_door.attempts import HeldAttempt, is_current
from webapp.worker_door.gangs import leave
from workers import stopping
from workers.gpu.coordinator import weights_and_control_routes
from workers.gpu.coordinator.server import CoordinatorServer
from workers.gpu.experiment_folders import experiment_folder, output_folder
from workers.gpu.failure_reason import waited_for_hosts, why_trainer_ended
from workers.gpu.fetched_checkpoints import bring_model
from workers.gpu.gang import GangBroken, HostsMissing, come, meet, require_shared
from workers.gpu.gpu_placement import TooFewGpus, placed_gpus, trainer_and_engine
from workers.gpu.model_folder import ModelNotFound
from workers.gpu.resolved_config import allowed_config, with_folders
from workers.gpu.trainer_process import LOG_TAIL_LINES, start_trainer
from workers.processes.logged_process import LoggedProcess
from workers.reports.current import reports

log = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0


class AttemptOver(Exception):
    """Raised when the attempt has ended where it runs."""


def run(attempt_id: int, host: int) -> None:
    """Body of the job; one that comes late or twice steps aside."""
    try:
        attempt = come(attempt_id, host)
    except GangBroken as error:
        leave(attempt_id, host, str(error), is_left_alone=False)
        return
    if attempt is None:
        log.info("host %d of attempt %d is not wanted any more; stepping aside", host, attempt_id)
        return
    with log_about(experiment_id=attempt.experiment_id):
        is_left_alone = False
        try:
            problem = _run(attempt, host)
        except AttemptOver:
            log.info("the attempt has ended")
            return
        except HostsMissing as error:
            problem, is_left_alone = str(error), True
        except (ConfigError, GangBroken, ModelNotFound, TooFewGpus, OSError) as error:
            problem = str(error)
        except Exception as error:
            reports().request(leave, attempt.pk, host, f"gpu worker error: {error!r}", is_left_alone=False)
            raise
        if problem:
            log.warning("host %d leaves: %s", host, problem)
            reports().request(leave, attempt.pk, host, problem, is_left_alone)


def _run(attempt: HeldAttempt, host: int) -> str:
    """Until this host's ranks have ended; why, unless that was planned."""
    config = allowed_config(attempt)
    folder, output = experiment_folder(attempt.experiment_id), output_folder(attempt.experiment_id)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    model = bring_model(config.model.path, config.optimiser.seed)
    require_shared(attempt, checkpoints_folder(config.checkpoints.directory, output))
    config_path = folder / "config.yaml"
    config_path.write_text(to_yaml(with_folders(config, model)))
    gpus, _ = trainer_and_engine(config, placed_gpus(attempt.members[host - 1].keys))

    def keep_going() -> None:
        close_old_connections()
        if not reports().request(is_current, attempt.pk):
            raise AttemptOver

    gang = meet(attempt, host, folder, keep_going)
    with CoordinatorServer(None, handlers=weights_and_control_routes.OF_EVERY_HOST) as coordinator:
        trainer = start_trainer(
            config,
            config_path=config_path,
            output=output,
            log_path=folder / "logs" / f"trainer-{attempt.number}-host{host}.log",
            coordinator=coordinator,
            gpus=gpus,
            gang=gang,
        )
        try:
            return _watch(trainer, attempt, host, keep_going)
        finally:
            trainer.stop()


def _watch(trainer: LoggedProcess, attempt: HeldAttempt, host: int, keep_going: Callable[[], None]) -> str:
    leaves_by: float | None = None
    while (code := trainer.exit_code()) is None:
        if stopping.is_wanted() and leaves_by is None:
            # The first host has all ranks save a checkpoint and leave; these leave with them.
            reports().request(leave, attempt.pk, host, "the gpu worker was stopped", is_left_alone=False)
            leaves_by = time.monotonic() + settings.STOP_GRACE_S
        if leaves_by is not None and time.monotonic() > leaves_by:
            return "the gpu worker was stopped"
        keep_going()
        time.sleep(LOOK_EVERY_S)
    if code in PLANNED:
        return ""
    tail = trainer.tail(LOG_TAIL_LINES)
    reason = why_trainer_ended(code, tail)
    if waited_for_hosts(tail):
        raise HostsMissing(reason)
    return reason
