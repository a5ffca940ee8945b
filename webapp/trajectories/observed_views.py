"""What a turn showed beside its screenshot: the accessibility tree with its changes, and the terminal."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from training.observations.widget_tree import BadTree
from training.untrusted.packed_texts import NotAText
from webapp.lib.media.errors import StorageAway
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.models import TurnRecord
from webapp.trajectories.observed_tree import TreeRow, tree_change, tree_rows
from webapp.trajectories.services.texts import read_text

GONE = "The text is gone from the storage."


@require_safe
def turn_texts(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """JSON of a turn's tree and terminal; null for what was not read with it."""
    trajectory = get_trajectory(request, pk)
    rows = trajectory.turns.filter(index__in=(index - 1, index)).order_by("index")
    found = {row.index: row for row in rows.only("index", "accessibility", "terminal", "read_texts")}
    if index not in found:
        raise Http404
    turn, before = found[index], found.get(index - 1)
    return JsonResponse({"tree": _tree(turn, before), "terminal": _terminal(turn, before)})


def _tree(turn: TurnRecord, before: TurnRecord | None) -> dict[str, Any] | None:
    read = (turn.read_texts or {}).get("accessibility")
    if read is None:
        return None
    text, error = _text(turn.accessibility, read)
    rows, num_left, parsed_error = _rows(text)
    then = _rows(_text(before.accessibility, {})[0])[0] if before and before.accessibility else []
    change = tree_change(then, rows) if then and rows else None
    marks = change.marks if change else [""] * len(rows)
    return {
        "error": error or parsed_error,
        "numChars": read.get("num_chars", 0),
        "numLeft": num_left,
        "rows": [[*row[:-1], mark] for row, mark in zip(rows, marks, strict=True)],
        "removed": [[row.role, row.name or row.text] for row in change.removed] if change else [],
        "hasBefore": change is not None,
    }


def _terminal(turn: TurnRecord, before: TurnRecord | None) -> dict[str, Any] | None:
    read = (turn.read_texts or {}).get("terminal")
    if read is None:
        return None
    text, error = _text(turn.terminal, read)
    has_changed = bool(before and before.read_texts and before.terminal != turn.terminal)
    return {"error": error, "text": text, "hasChanged": has_changed}


def _text(sha256: str | None, read: dict[str, Any]) -> tuple[str, str]:
    """A raw text, or "" and why there is none."""
    if not sha256:
        return "", read.get("error", "") or "It could not be read."
    try:
        return read_text(sha256), ""
    except (FileNotFoundError, NotAText):
        return "", GONE
    except StorageAway as error:
        return "", f"The storage does not answer: {error}"


def _rows(text: str) -> tuple[list[TreeRow], int, str]:
    if not text:
        return [], 0, ""
    try:
        return *tree_rows(text), ""
    except BadTree as error:
        return [], 0, f"It cannot be shown: {error}."
