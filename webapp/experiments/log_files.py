"""Reading an experiment's log files from the end, from a place, or from their first error."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

CHUNK_BYTES = 64 * 1024
CHUNK_LINES = 1000
"""Of short lines, their places would otherwise take more than they do."""
LINES_BEFORE_ERROR = 20
ERROR = re.compile(
    r"\b(ERROR|CRITICAL|FATAL)\b|^Traceback \(most recent call last\)|^\w*(Error|Exception)\b[:(]"
)
ERROR_WORD = re.compile(rb"ERROR|CRITICAL|FATAL|Traceback|Error|Exception")
"""Every text that `ERROR` matches holds one of them."""
LINE_ENDS = (b"\n", b"\r")
SEARCH_BYTES = 1024 * 1024
LARGEST_BYTES = 20 << 20
"""Of a file that grows by what a joined host tells."""
SEARCH_S = 0.4
"""A search stops after this time and says how far it came, so that no request holds the server."""
WARNING = re.compile(r"\b(WARNING|WARN)\b|Warning:")
DEBUG = re.compile(r"\bDEBUG\b")
NAME = re.compile(r"^[A-Za-z0-9._-]+\.log(\.\d+)?$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the experiment's log folder."""

    name: str
    num_bytes: int
    modified: float


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a file."""

    lines: list[tuple[int, str, str]]
    """(byte offset, level, text)"""
    start: int
    end: int
    """Where the next chunk begins."""
    num_bytes: int


def log_folder(experiment_id: int) -> Path:
    return settings.EXPERIMENTS_DIR / str(experiment_id) / "logs"


def append_log(experiment_id: int, name: str, text: str) -> None:
    """Add what a joined host's process wrote; what is too long goes to NAME.1, as on the host itself."""
    path = log_folder(experiment_id) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LARGEST_BYTES:
        path.replace(path.with_name(f"{name}.1"))
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


def log_files(experiment_id: int) -> list[LogFile]:
    """Newest attempt first; an experiment that never started has none."""
    folder = log_folder(experiment_id)
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if not NAME.match(path.name):
            continue
        state = path.stat()
        found.append(LogFile(path.name, state.st_size, state.st_mtime))
    return sorted(found, key=_attempt_order, reverse=True)


def _attempt_order(file: LogFile) -> tuple[int, bool, int, float]:
    """trainer-3.log before trainer-3.log.1 before policy-3.log before trainer-2.log."""
    number = re.search(r"-(\d+)\.log", file.name)
    attempt = int(number.group(1)) if number else 0
    age = re.search(r"\.log\.(\d+)$", file.name)
    return attempt, file.name.startswith("trainer"), -int(age.group(1)) if age else 0, file.modified


def log_path(experiment_id: int, name: str) -> Path | None:
    """The file of that name; None for anything that is not one of the experiment's log files."""
    path = log_folder(experiment_id) / name
    return path if NAME.match(name) and path.is_file() else None


def level_of(line: str) -> str:
    """error, warning, debug or info."""
    if ERROR.search(line):
        return "error"
    if WARNING.search(line):
        return "warning"
    return "debug" if DEBUG.search(line) else "info"


def read_chunk(path: Path, start: int | None) -> Chunk:
    """At most CHUNK_LINES from byte `start` on; the last ones of the file when it is None."""
    num_bytes = path.stat().st_size
    is_tail = start is None
    start = max(0, num_bytes - CHUNK_BYTES) if start is None else min(max(0, start), num_bytes)
    with path.open("rb") as stream:
        stream.seek(start)
        data = stream.read(CHUNK_BYTES)
    if is_tail and start:
        cut = data.find(b"\n") + 1
        start, data = start + cut, data[cut:]
    whole = data.rfind(b"\n") + 1
    # A line longer than a chunk would never end: it is shown in pieces.
    data = data[:whole] if whole else data if len(data) == CHUNK_BYTES else b""
    found = data.splitlines(keepends=True)
    if is_tail:
        start += sum(map(len, found[:-CHUNK_LINES]))
        found = found[-CHUNK_LINES:]
    lines, offset = [], start
    for raw in found[:CHUNK_LINES]:
        text = raw.decode(errors="replace").rstrip("\r\n")
        lines.append((offset, level_of(text), text))
        offset += len(raw)
    return Chunk(lines, start, offset, num_bytes)


@dataclass(frozen=True, slots=True)
class ErrorSearch:
    """What one search for the first error found."""

    start: int | None
    """Byte offset a few lines before it; None without one so far."""
    end: int
    """Up to where lines were looked at."""
    is_whole: bool
    """Nothing is left to look at."""


def first_error(path: Path, after: int = 0) -> ErrorSearch:
    """The first error from the line that begins at byte `after` on, as far as SEARCH_S goes."""
    deadline = time.monotonic() + SEARCH_S
    with path.open("rb") as stream:
        stream.seek(after)
        offset, rest = after, b""
        while True:
            block = stream.read(SEARCH_BYTES)
            whole, newline, last = (rest + block).rpartition(b"\n")
            data, rest = (whole + newline, last) if block else (rest, b"")
            place = _place_of_error(data)
            if place is not None:
                return ErrorSearch(_lines_before(stream, offset + place), offset + place, is_whole=False)
            offset += len(data)
            if not block or time.monotonic() >= deadline:
                return ErrorSearch(None, offset, is_whole=not block)


def _place_of_error(data: bytes) -> int | None:
    """Where the line of the first error begins in whole lines. Only lines that hold a word of errors are
    looked at: a million others take no second."""
    searched = 0
    while word := ERROR_WORD.search(data, searched):
        start = max(data.rfind(end, searched, word.start()) for end in LINE_ENDS) + 1
        start = max(start, searched)
        ends = [place for end in LINE_ENDS if (place := data.find(end, word.end())) >= 0]
        searched = min(ends, default=len(data))
        if level_of(data[start:searched].decode(errors="replace")) == "error":
            return start
    return None


def _lines_before(stream: BinaryIO, offset: int) -> int:
    """Where the line LINES_BEFORE_ERROR before the one at `offset` begins."""
    low = max(0, offset - CHUNK_BYTES // 2)
    stream.seek(low)
    before = stream.read(offset - low).splitlines(keepends=True)[-LINES_BEFORE_ERROR:]
    return offset - sum(len(raw) for raw in before)
