"""The audit log as a file: CSV for spreadsheets, JSON lines for programs."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from webapp.accounts.models import AuditEntry

COLUMNS = ("id", "at", "person", "action", "object", "team", "detail")
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}
CHUNK = 2000
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


async def export_lines(rows: QuerySet[AuditEntry], file_format: str) -> AsyncIterator[str]:
    """`rows`, oldest first, in one of CONTENT_TYPES."""
    if file_format == "csv":
        yield _csv_line(COLUMNS)
    last = 0
    while chunk := await sync_to_async(_read)(rows, last):
        last = chunk[-1]["id"]
        for row in chunk:
            yield json.dumps(row) + "\n" if file_format == "jsonl" else _csv_line(map(_cell, row.values()))


def _read(rows: QuerySet[AuditEntry], after: int) -> list[dict[str, Any]]:
    return [as_values(row) for row in rows.filter(pk__gt=after).order_by("id")[:CHUNK]]


def as_values(row: AuditEntry) -> dict[str, Any]:
    """The row as files and the API tell it, in the order of COLUMNS."""
    return {
        "id": row.pk,
        "at": row.at.isoformat(),
        "person": row.person_name,
        "action": row.action,
        "object": f"{row.kind} {row.object_id}".strip(),
        "team": row.team.name if row.team else None,
        "detail": row.detail,
    }


def _cell(value: Any) -> str:
    """As text that no spreadsheet runs: names of people and objects may begin like a formula."""
    text = json.dumps(value) if isinstance(value, dict) else "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _csv_line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
