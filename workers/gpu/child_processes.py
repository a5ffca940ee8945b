"""How the gpu worker starts its child processes: in the repository, recorded below the data folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from django.conf import settings

from workers.processes.logged_process import LoggedProcess
from workers.processes.pid_records import PidRecords

SWEEP_GRACE_S = 5.0


def start_child(
    name: str, command: Iterable[str], *, log_path: Path, env: Mapping[str, str]
) -> LoggedProcess:
    """Start one. Raises OSError."""
    return LoggedProcess(name, command, log_path=log_path, env=env, cwd=settings.BASE_DIR, records=_records())


def sweep_orphans() -> int:
    """End the process groups that an earlier gpu worker on this data folder left; returns how many."""
    return _records().sweep(grace_s=SWEEP_GRACE_S)


def _records() -> PidRecords:
    return PidRecords(Path(settings.DATA_DIR) / "run" / "gpu-children")
