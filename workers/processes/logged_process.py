"""A child process with a group of its own, a log file that is rotated, and a pid record."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from workers.processes.pid_records import PidRecords
from workers.processes.process_group import die_with_parent, end_group
from workers.processes.rotating_log import RotatingLog, rotated

GRACE_S = 30.0
"""A trainer may be saving a checkpoint."""
TAIL_BYTES = 16384
LAST_LINES_S = 2.0
"""How long what a child left behind may keep its log open."""


class LoggedProcess:
    """A started command; its group is ended with it, by the records' next sweep at the latest."""

    def __init__(
        self,
        name: str,
        command: Iterable[str],
        *,
        log_path: Path,
        env: Mapping[str, str],
        cwd: Path,
        records: PidRecords,
    ) -> None:
        """Start it, from a thread that lives as long as it should. Raises OSError."""
        self.log_path = log_path
        self.process = subprocess.Popen(
            die_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._log = RotatingLog(log_path, self.process.stdout)
        self._records = records
        self._record = f"{name.replace(' ', '-')}-{self.process.pid}"
        records.add(self._record, self.process.pid)

    def exit_code(self) -> int | None:
        """None while it runs; afterwards its last lines are in the log."""
        code = self.process.poll()
        if code is not None:
            self._log.wait(LAST_LINES_S)
        return code

    def stop(self, grace_s: float = GRACE_S) -> None:
        """SIGTERM to the group, SIGKILL after `grace_s`; idempotent."""
        end_group(self.process.pid, grace_s=grace_s, leader=self.process)
        self._records.remove(self._record)
        self._log.wait(LAST_LINES_S)

    def tail(self, num_lines: int = 12) -> str:
        """Last lines of its log, for the reason of a crash."""
        end = b"".join(_end_of(path) for path in (rotated(self.log_path), self.log_path))
        return "\n".join(end.decode(errors="replace").splitlines()[-num_lines:])


def _end_of(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return stream.read()
