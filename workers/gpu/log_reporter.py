"""What an attempt's child processes write, reported to the server by a joined host: pages read its files."""

from collections.abc import Mapping
from pathlib import Path

from webapp.worker_door.gpu_hosts import LogName, tell_log
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

EVERY_S = 1.0
LARGEST_TEXT_BYTES = 256 << 10


class LogReporter(RepeatedStep):
    """Reads what is new in a thread of its own; use as a context manager. Only a joined host reports."""

    def __init__(self, attempt_id: int, paths: Mapping[LogName, Path]) -> None:
        super().__init__("log-reporter", self.report, EVERY_S)
        self._attempt_id, self._paths = attempt_id, paths
        self._read: dict[LogName, tuple[int, int]] = {}
        """(inode, bytes) that were reported: a log that is rotated begins anew."""

    def start(self) -> None:
        if reports().is_joined:
            super().start()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if reports().is_joined:
            self.report()

    def report(self) -> None:
        for name, path in self._paths.items():
            while text := self._next(name, path):
                reports().report(tell_log, self._attempt_id, name, text)

    def _next(self, name: LogName, path: Path) -> str:
        if not path.exists():
            return ""
        with path.open("rb") as stream:
            inode = path.stat().st_ino
            known, offset = self._read.get(name, (inode, 0))
            start = offset if known == inode else 0
            stream.seek(start)
            data = stream.read(LARGEST_TEXT_BYTES)
            whole = (
                data[: data.rfind(b"\n") + 1] or data[: len(data) if len(data) == LARGEST_TEXT_BYTES else 0]
            )
        self._read[name] = inode, start + len(whole)
        return whole.decode(errors="replace")
