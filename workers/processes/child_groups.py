"""Child process groups of an attempt: started in their own session, ended as a group, recorded on disk.

A child is only ever ended by its recorded pid AND start time, never by name. The kernel ends it
when the gpu worker dies (PDEATHSIG); grandchildren that outlive that (torchrun's ranks) are ended
by the next start-up's sweep.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
from django.conf import settings

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
GRACE_S = 30.0
"""A trainer may be saving a checkpoint."""


def _records_dir() -> Path:
    folder = Path(settings.DATA_DIR) / "run" / "gpu-children"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One child process group with its log file."""

    def __init__(self, name: str, command: list[str], *, log_path: Path, env: dict[str, str]) -> None:
        """Start it. The parent must be a long-lived thread: PDEATHSIG fires when the thread ends."""
        self.name = name
        self.log_path = log_path
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=settings.BASE_DIR,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self._record = _records_dir() / f"{self.process.pid}.json"
        started = psutil.Process(self.process.pid).create_time()
        self._record.write_text(json.dumps({"pid": self.process.pid, "started": started, "name": name}))

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """SIGTERM to the group, SIGKILL after `grace_s`; idempotent."""
        _end_group(self.process.pid, grace_s, self.process)
        self._record.unlink(missing_ok=True)

    def tail(self, num_lines: int = 12) -> str:
        """Last lines of its log, for the reason of a crash."""
        with self.log_path.open("rb") as stream:
            stream.seek(max(0, self.log_path.stat().st_size - 16384))
            lines = stream.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-num_lines:])


def _end_group(group: int, grace_s: float, process: subprocess.Popen[bytes] | None = None) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and _group_alive(group, process):
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    if process is not None:
        process.wait(timeout=10)


def _group_alive(group: int, process: subprocess.Popen[bytes] | None) -> bool:
    if process is not None:
        process.poll()  # reap, or the zombie keeps its group alive
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def sweep_orphans() -> int:
    """End the process groups that an earlier gpu worker on this data folder left; returns how many."""
    ended = 0
    for record in _records_dir().glob("*.json"):
        known = json.loads(record.read_text())
        if _is_ours(known) or _leads_nobody_but_group_lives(known):
            log.warning("ending the orphaned %s (pid %s)", known["name"], known["pid"])
            _end_group(known["pid"], grace_s=5.0)
            ended += 1
        record.unlink(missing_ok=True)
    return ended


def _is_ours(known: dict[str, float]) -> bool:
    try:
        return abs(psutil.Process(int(known["pid"])).create_time() - known["started"]) < 0.05
    except psutil.NoSuchProcess:
        return False


def _leads_nobody_but_group_lives(known: dict[str, float]) -> bool:
    """The leader died but members of its session live: a pid is not reused while its group exists."""
    if psutil.pid_exists(int(known["pid"])):
        return False
    return _group_alive(int(known["pid"]), None)
