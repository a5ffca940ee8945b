"""Forms of files by the name that an export asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from webapp.replay.formats.atif.archive import ATIF
from webapp.replay.formats.contract import Format
from webapp.replay.formats.lines.read_lines import LINES
from webapp.replay.formats.parquet.rows import PARQUET

FORMATS: dict[str, Format] = {
    "jsonl": LINES,
    "parquet": PARQUET,
    "atif": ATIF,
}

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]  # the table is the only list of names


def format_of(first_bytes: bytes) -> Format:
    """The form of a file that begins so."""
    known = (one for one in FORMATS.values() if one.first_bytes == first_bytes[:4])
    return next(known, LINES)


def uploads() -> str:
    """The files that may be uploaded, for people."""
    *others, last = [one.uploads for one in FORMATS.values()]
    return f"{', '.join(others)}, or {last}" if others else last
