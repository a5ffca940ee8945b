"""An attempt over several hosts: all of them come in time, or it ends and is placed anew."""

import json
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from webapp.worker_door import gangs
from webapp.worker_door.attempts import HeldAttempt
from webapp.worker_door.gangs import Gathering, call_gang, gathering
from workers import identity
from workers.gpu.train_network import TrainAddress, own_train_address
from workers.reports.current import reports

COME_WITHIN_S = 60.0
LOOK_EVERY_S = 0.5
MARK = ".gang"
"""In the folder of checkpoints: what the first host wrote there, each other one must find."""
MARK_SEEN_WITHIN_S = 15.0
"""A network's file system shows a new file when it has looked again."""


class GangBroken(Exception):
    """Raised when a host left, or did not come; the message names it."""


class HostsMissing(GangBroken):
    """Raised when hosts did not come and nothing failed on those that did."""


def gather(
    attempt: HeldAttempt, folder: Path, checkpoints: Path, keep_going: Callable[[], object]
) -> Path | None:
    """Call the other hosts of the attempt and wait for them; the gang's file, None when it has one host.

    `keep_going` is called between looks and may raise. Raises GangBroken, OSError.
    """
    if not attempt.members:
        return None
    attempt = replace(attempt, gang_secret=secrets.token_hex(16))
    checkpoints.mkdir(parents=True, exist_ok=True)
    (checkpoints / MARK).write_text(attempt.gang_secret)
    workers = [identity.current().name, *(one.worker for one in attempt.members)]
    if problem := reports().request(call_gang, attempt.pk, workers, attempt.gang_secret):
        raise HostsMissing(problem)
    if come(attempt.pk, 0) is None:
        raise GangBroken("the attempt has ended meanwhile")
    return meet(attempt, 0, folder, keep_going)


def come(attempt_id: int, host: int) -> HeldAttempt | None:
    """Report where the ranks of this host are; None when the attempt needs it no more. Raises GangBroken."""
    here = _own_address().address
    with socket.socket() as probe:
        probe.bind((here, 0))
        port = probe.getsockname()[1]
    return reports().request(gangs.come, attempt_id, host, identity.current().name, f"{here}:{port}")


def _own_address() -> TrainAddress:
    if (found := own_train_address()) is None:
        raise GangBroken("DESKHAND_TRAIN_NETWORK names no network that this host is in")
    return found


def require_shared(attempt: HeldAttempt, checkpoints: Path) -> None:
    """Raise GangBroken unless this host's folder of checkpoints is the first host's: a checkpoint without
    this one's shards could not be read."""
    deadline = time.monotonic() + MARK_SEEN_WITHIN_S
    while not _holds(checkpoints / MARK, attempt.gang_secret):
        if time.monotonic() > deadline:
            raise GangBroken(
                f"checkpoints.directory: {checkpoints} is not the folder that the first host has"
            )
        time.sleep(LOOK_EVERY_S)


def meet(attempt: HeldAttempt, host: int, folder: Path, keep_going: Callable[[], object]) -> Path:
    """Wait until all have come; the file that this host's launcher reads. Raises GangBroken, HostsMissing."""
    deadline = time.monotonic() + COME_WITHIN_S
    while True:
        found = reports().request(gathering, attempt.pk)
        if broken := _broken(found):
            raise broken
        if not found.missing:
            break
        if time.monotonic() > deadline:
            raise HostsMissing(f"{', '.join(found.missing)} did not come within {COME_WITHIN_S:.0f} s")
        keep_going()
        time.sleep(LOOK_EVERY_S)
    file = folder / f"gang-{host}.json"  # hosts may share the folder
    values = {"host": host, "addresses": found.addresses, "interface": _own_address().interface}
    file.write_text(json.dumps(values))
    return file


def why_broken(attempt: HeldAttempt) -> GangBroken | None:
    """What hosts of the attempt say that cannot go on; asks nothing where it has one."""
    if not attempt.members:
        return None
    return _broken(reports().request(gathering, attempt.pk))


def _broken(found: Gathering) -> GangBroken | None:
    if not found.problems:
        return None
    return (GangBroken if found.has_failed else HostsMissing)("; ".join(found.problems))


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text
    except FileNotFoundError:
        return False
