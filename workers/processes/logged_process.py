"""A child process with a group of its own, a log file and a pid record."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from workers.processes.pid_records import PidRecords
from workers.processes.process_group import die_with_parent, end_group

GRACE_S = 30.0
"""A trainer may be saving a checkpoint."""
TAIL_BYTES = 16384


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
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as output:
            self.process = subprocess.Popen(
                die_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        self._records = records
        self._record = f"{name.replace(' ', '-')}-{self.process.pid}"
        records.add(self._record, self.process.pid)

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """SIGTERM to the group, SIGKILL after `grace_s`; idempotent."""
        end_group(self.process.pid, grace_s=grace_s, leader=self.process)
        self._records.remove(self._record)

    def tail(self, num_lines: int = 12) -> str:
        """Last lines of its log, for the reason of a crash."""
        with self.log_path.open("rb") as stream:
            stream.seek(max(0, self.log_path.stat().st_size - TAIL_BYTES))
            lines = stream.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-num_lines:])
