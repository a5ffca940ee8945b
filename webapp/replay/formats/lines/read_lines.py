"""The lines of a file, whichever way they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from django.core.files import File

from training.tasks.json_files import LINE_END
from webapp.lib.request_values import json_object
from webapp.replay.formats.contract import BATCH_LINES, Batch, Format, Row
from webapp.replay.formats.slime_export import ImageForm, export_line
from webapp.replay.models import ReplayEntry, ReplayImport

READ_BYTES = 2**20


def line_pieces(entries: Iterable[ReplayEntry], images: ImageForm) -> Iterator[bytes]:
    """One line each. Raises CannotExport."""
    return (export_line(entry, images).encode() + b"\n" for entry in entries)


def line_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    file.seek(job.done_bytes)
    number, done = job.done_lines, job.done_bytes
    found = _lines(file)
    while lines := list(islice(found, BATCH_LINES)):
        numbered: dict[int, Row] = {
            place: partial(json_object, line, "")
            for place, line in enumerate(lines, start=number + 1)
            if line.strip()
        }
        number += len(lines)
        done += sum(map(len, lines))
        yield Batch(numbered, number, done)


def _lines(file: File[Any]) -> Iterator[bytes]:
    """With their ends: LF, CR LF, or CR alone. U+2028 ends none."""
    kept, searched = b"", 0
    while more := file.read(READ_BYTES):
        kept, start = kept + more, 0
        for end in LINE_END.finditer(kept, searched):
            if end.end() == len(kept) and end[0] == b"\r":
                break  # the LF of a CR LF may follow
            yield kept[start : end.end()]
            start = end.end()
        kept = kept[start:]
        searched = max(0, len(kept) - 1)
    yield from kept.splitlines(keepends=True)


LINES = Format(
    title="JSON lines",
    about="",
    content_type="application/x-ndjson; charset=utf-8",
    ending=".jsonl",
    pieces=line_pieces,
    first_bytes=b"",
    batches=line_batches,
    uploads=".jsonl",
    endings=(".jsonl", ".ndjson", ".json"),
    unpacks=False,
)
