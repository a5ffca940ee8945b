"""How the gpu worker starts its child processes: in the repository, recorded below the data folder."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from django.conf import settings

from workers import identity
from workers.processes.logged_process import LoggedProcess
from workers.processes.record_owners import OwnedRecords

SWEEP_GRACE_S = 5.0


def start_child(
    name: str, command: Iterable[str], *, log_path: Path, env: Mapping[str, str]
) -> LoggedProcess:
    """Start one. Raises OSError."""
    records = _records(identity.current().name).records
    return LoggedProcess(name, command, log_path=log_path, env=env, cwd=settings.BASE_DIR, records=records)


def claim_name() -> None:
    """Keep this worker's name from others on this data folder while it lives. Raises OwnerLives."""
    _records(identity.current().name).claim()


def sweep_orphans() -> int:
    """End the process groups that dead gpu workers on this data folder left; returns how many.

    What live ones run is theirs: several may share one folder.
    """
    return _records(identity.current().name).sweep(grace_s=SWEEP_GRACE_S)


@cache
def _records(owner: str) -> OwnedRecords:
    return OwnedRecords(Path(settings.DATA_DIR) / "run" / "gpu-children", owner)
