"""What an attempt's child processes write, told to the server by a joined host: pages read its files."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from workers.door.through import is_joined
from workers.gpu.webapp_imports import LogName, tell_log

EVERY_S = 1.0
LARGEST_TEXT_BYTES = 256 << 10


class ToldLogs:
    """Reads what is new in a thread of its own; use as a context manager. Only a joined host tells."""

    def __init__(self, attempt_id: int, paths: Mapping[LogName, Path]) -> None:
        self._attempt_id, self._paths = attempt_id, paths
        self._read: dict[LogName, tuple[int, int]] = {}
        """(inode, bytes) that were told: a log that is rotated begins anew."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._forever, name="told-logs", daemon=True)

    def __enter__(self) -> ToldLogs:
        if is_joined():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if is_joined():
            self._thread.join()
            self.tell()

    def _forever(self) -> None:
        while not self._stopping.wait(EVERY_S):
            self.tell()

    def tell(self) -> None:
        """What is new."""
        for name, path in self._paths.items():
            while text := self._next(name, path):
                tell_log(self._attempt_id, name, text)

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
