"""What a form of files is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.core.files import File

from webapp.replay.formats.slime_export import ImageForm
from webapp.replay.models import ReplayEntry, ReplayImport

BATCH_LINES = 32
Row = Callable[[], dict[str, Any]]
"""Reads a row as the object of a line. Raises BadValue, ReadProblem."""


class UnreadableFile(Exception):
    """Raised when the file as a whole cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, with where the file goes on behind them."""

    rows: dict[int, Row]
    """Number, from 1 -> row; empty lines left out."""
    done_lines: int
    done_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One row; its name in the registry is the export's `form`."""

    title: str
    about: str
    """What reads it, for people who choose."""
    content_type: str
    ending: str
    """Of an exported file's name."""
    pieces: Callable[[Iterable[ReplayEntry], ImageForm], Iterator[bytes]]
    """The file of these entries, piece by piece. Raises CannotExport."""
    first_bytes: bytes
    """Four by which a file of it is known; b"" = it is read when no other form is known."""
    batches: Callable[[File[Any], ReplayImport], Iterator[Batch]]
    """The rest of the file. Raises UnreadableFile."""
    uploads: str
    """Files of it, for people."""
    endings: tuple[str, ...]
    """Of files that may be uploaded."""
    unpacks: bool = True
    """A small file of it may hold any amount."""
