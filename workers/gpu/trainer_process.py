"""The trainer's processes of one host, started by their launcher."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from training.contracts.config import ExperimentConfig
from webapp.worker_door.trajectories import frames_folder
from workers.gpu.child_processes import start_child
from workers.gpu.coordinator.server import CoordinatorServer
from workers.processes.logged_process import LoggedProcess

LOG_TAIL_LINES = 120
"""More than a traceback through the libraries below takes: why a trainer ended."""


def start_trainer(
    config: ExperimentConfig,
    *,
    config_path: Path,
    output: Path,
    log_path: Path,
    coordinator: CoordinatorServer,
    gpus: Mapping[str, str],
    gang: Path | None,
) -> LoggedProcess:
    """By the launcher, also for one process: the same path as on many GPUs. `gang`: the file that names the
    hosts, None where there is one."""
    command = [
        sys.executable,
        *("-m", "training.distributed.launch"),
        *("--ranks", str(config.optimiser.processes_per_host)),
        *(("--gang", str(gang)) if gang else ()),
        *("-m", "training.loop.train"),
        *("--config", str(config_path)),
        *("--output", str(output)),
    ]
    env = {
        **os.environ,
        "DESKHAND_COORDINATOR_URL": coordinator.url,
        "DESKHAND_COORDINATOR_TOKEN": coordinator.token,
        **gpus,
        "DESKHAND_FRAMES_DIR": frames_folder(),
        "PYTHONUNBUFFERED": "1",
    }
    return start_child("trainer", command, log_path=log_path, env=env)
