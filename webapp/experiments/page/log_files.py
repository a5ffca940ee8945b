"""Reading an experiment's log files from the end, from a place, or from their first error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

CHUNK_BYTES = 128 * 1024
LINES_BEFORE_ERROR = 20
ERROR = re.compile(
    r"\b(ERROR|CRITICAL|FATAL)\b|^Traceback \(most recent call last\)|^\w*(Error|Exception)\b[:(]"
)
ERROR_WORDS = (b"ERROR", b"CRITICAL", b"FATAL", b"Traceback", b"Error", b"Exception")
"""Every text that `ERROR` matches holds one of them."""
SEARCH_BYTES = 1024 * 1024
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
    """Lines from byte `start` on; the last CHUNK_BYTES of the file when it is None."""
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
    lines, offset = [], start
    for raw in data.splitlines(keepends=True):
        text = raw.decode(errors="replace").rstrip("\r\n")
        lines.append((offset, level_of(text), text))
        offset += len(raw)
    return Chunk(lines, start, start + len(data), num_bytes)


def first_error(path: Path) -> int | None:
    """Byte offset a few lines before the first error; None without one."""
    with path.open("rb") as stream:
        start = _start_of_error(stream, 0)
        return None if start is None else _lines_before(stream, start)


def _start_of_error(stream: BinaryIO, offset: int) -> int | None:
    """Where the line of the first error after `offset` begins. Lines are looked at only in blocks that hold
    a word of errors at all: a million lines take no second."""
    stream.seek(offset)
    rest = b""
    while block := stream.read(SEARCH_BYTES):
        whole, newline, rest_of_block = (rest + block).rpartition(b"\n")
        data = whole + newline
        if any(word in data for word in ERROR_WORDS):
            for raw in data.splitlines(keepends=True):
                if _is_error(raw):
                    return offset
                offset += len(raw)
        else:
            offset += len(data)
        rest = rest_of_block
    return offset if _is_error(rest) else None


def _is_error(raw: bytes) -> bool:
    has_word = any(word in raw for word in ERROR_WORDS)
    return has_word and level_of(raw.decode(errors="replace").rstrip("\r\n")) == "error"


def _lines_before(stream: BinaryIO, offset: int) -> int:
    """Where the line LINES_BEFORE_ERROR before the one at `offset` begins."""
    low = max(0, offset - CHUNK_BYTES // 2)
    stream.seek(low)
    before = stream.read(offset - low).splitlines(keepends=True)[-LINES_BEFORE_ERROR:]
    return offset - sum(len(raw) for raw in before)
