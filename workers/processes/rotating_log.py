"""Copies what a child process writes into a log file that is rotated: FILE, FILE.1, FILE.2 and so on.

The child writes into a pipe, so that a full disk costs it its log and not its life.
"""

import contextlib
import logging
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)
LARGEST_FILE_BYTES = 20 << 20
ROTATED_FILES = 3
LONGEST_LINE_BYTES = 64 << 10
"""A progress bar may go on for ever without an end of line."""


def rotated(path: Path) -> Path:
    """What came before, the file of yesterday's lines."""
    return path.with_name(f"{path.name}.1")


class _Files(RotatingFileHandler):
    """Says once that it cannot write, instead of a traceback for each line that is lost."""

    has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.has_failed:
            log.warning("lines of %s are lost: %s", self.baseFilename, sys.exc_info()[1])
        self.has_failed = True


class RotatingLog:
    """A thread that copies until every writer has closed its end of the pipe."""

    def __init__(self, path: Path, source: IO[bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._source = source
        self._handler = _Files(path, maxBytes=LARGEST_FILE_BYTES, backupCount=ROTATED_FILES, encoding="utf-8")
        self._thread = threading.Thread(target=self._copy, name=f"log {path.name}", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        with self._source:
            for line in iter(lambda: self._source.readline(LONGEST_LINE_BYTES), b""):
                text = line.decode(errors="replace").rstrip("\n")
                self._handler.handle(logging.makeLogRecord({"msg": text}))
        with contextlib.suppress(OSError):  # its last lines, on a full disk
            self._handler.close()

    def wait(self, timeout_s: float) -> None:
        """For the last lines of a child that has ended; what it left behind may hold the pipe open."""
        self._thread.join(timeout_s)
