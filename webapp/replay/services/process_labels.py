"""Ratings of single turns: good, bad, and the first that was wrong; as JSON lines in and out.

{"trajectory": 12, "by": "anna", "origin": "", "ratings": {"0": 1, "4": -1}, "first_wrong": 4, ...}
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import StreamingHttpResponse

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue, check_text, json_object, shortened
from webapp.replay.models import ProcessLabel
from webapp.replay.turn_ratings import RATINGS
from webapp.trajectories.models import Trajectory, TurnRecord

MAX_LINES = 20_000
MAX_UPLOAD_BYTES = 32 * 1024 * 1024
MAX_ORIGIN = 40
MAX_PROBLEMS = 20


def rate_turn(*, trajectory: Trajectory, user: User, index: int, rating: int | None) -> ProcessLabel:
    """Set or, with None, take back one rating of one person. Raises BadValue."""
    if rating is not None and rating not in RATINGS:
        raise BadValue("rating", "must be 1, -1 or nothing")
    _check_turns(trajectory, [index])
    with transaction.atomic():
        label = _locked(trajectory, user)
        label.ratings.pop(str(index), None)
        if rating is not None:
            label.ratings[str(index)] = rating
        label.save()
        _record(trajectory, user, turn=index, rating=rating)
    return label


def mark_first_wrong(*, trajectory: Trajectory, user: User, index: int | None) -> ProcessLabel:
    """Say which turn was the first wrong one; None takes the mark back. Raises BadValue."""
    if index is not None:
        _check_turns(trajectory, [index])
    with transaction.atomic():
        label = _locked(trajectory, user)
        label.first_wrong = index
        label.save()
        _record(trajectory, user, first_wrong=index)
    return label


def _record(trajectory: Trajectory, user: User, **detail: object) -> None:
    team, pk = trajectory.team_id, trajectory.pk
    log_action(AuditAction.LABELLED, person=user, team=team, kind="trajectory", object_id=pk, **detail)


def _locked(trajectory: Trajectory, user: User) -> ProcessLabel:
    label, _ = ProcessLabel.objects.get_or_create(trajectory=trajectory, by=user, origin="")
    return ProcessLabel.objects.select_for_update().get(pk=label.pk)


def _check_turns(trajectory: Trajectory, indexes: Iterable[int]) -> None:
    missing = set(indexes) - set(trajectory.turns.values_list("index", flat=True))
    if missing:
        raise BadValue("turn", f"trajectory {trajectory.pk} has no turn {min(missing) + 1}")


# --- in and out --------------------------------------------------------------------------------------


def export_lines(team: Team) -> Iterator[str]:
    """Every label of the team, one JSON object each, without line ends."""
    rows = ProcessLabel.objects.filter(trajectory__team=team).select_related("by", "trajectory__task")
    for label in rows.defer("trajectory__task__spec").order_by("trajectory_id", "id").iterator():
        yield json.dumps(
            {
                "trajectory": label.trajectory_id,
                "task_id": label.trajectory.task.task_id,
                "by": label.by.get_username(),
                "origin": label.origin,
                "ratings": label.ratings,
                "first_wrong": label.first_wrong,
            },
            ensure_ascii=False,
        )


def import_lines(lines: Iterable[bytes], *, team: Team, user: User, origin: str) -> int:
    """Store labels as `user`'s under the name `origin`; all lines or none. Returns how many.

    A trajectory that has one of this origin gets the new one. Raises BadValue listing the wrong lines.
    """
    check_text(origin, "origin")
    origin = origin.strip()
    if not 1 <= len(origin) <= MAX_ORIGIN:
        raise BadValue("origin", f"say what made these labels, in 1 to {MAX_ORIGIN} characters")
    found, problems = _read_lines(lines)
    problems += _unknown_turns(found, team)
    if problems:
        more = f"; {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        raise BadValue("file", "; ".join(problems[:MAX_PROBLEMS]) + more)
    with transaction.atomic():
        for _, trajectory, ratings, first_wrong in found:
            ProcessLabel.objects.update_or_create(
                trajectory_id=trajectory,
                by=user,
                origin=origin,
                defaults={"ratings": ratings, "first_wrong": first_wrong},
            )
    return len(found)


Line = tuple[int, int, dict[str, int], int | None]
"""(number of the line, trajectory, ratings, first wrong turn)"""


def _read_lines(lines: Iterable[bytes]) -> tuple[list[Line], list[str]]:
    found: list[Line] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number > MAX_LINES:
            raise BadValue("file", f"has more than {MAX_LINES} lines")
        if not line.strip():
            continue
        try:
            found.append((number, *_read_line(json_object(line, ""))))
        except BadValue as error:
            problems.append(f"line {number}: {error}")
    return found, problems


def _read_line(data: dict[str, Any]) -> tuple[int, dict[str, int], int | None]:
    trajectory, first = data.get("trajectory"), data.get("first_wrong")
    if isinstance(trajectory, bool) or not isinstance(trajectory, int) or trajectory < 1:
        raise BadValue("trajectory", f"not the id of one: {shortened(trajectory)}")
    if first is not None and (isinstance(first, bool) or not isinstance(first, int) or first < 0):
        raise BadValue("first_wrong", f"not the index of a turn: {shortened(first)}")
    ratings = data.get("ratings") or {}
    if not isinstance(ratings, dict):
        raise BadValue("ratings", "not an object of turns")
    for index, value in ratings.items():
        if not (index.isascii() and index.isdecimal() and len(index) < 6):
            raise BadValue("ratings", f"{shortened(index)} is not the index of a turn")
        if isinstance(value, bool) or value not in RATINGS:
            raise BadValue(f"ratings.{index}", "must be 1 or -1")
    return trajectory, {str(int(index)): int(value) for index, value in ratings.items()}, first


def _unknown_turns(found: list[Line], team: Team) -> list[str]:
    known: dict[int, set[int]] = {}
    wanted = sorted({trajectory for _, trajectory, _, _ in found})
    for start in range(0, len(wanted), 500):
        rows = TurnRecord.objects.filter(trajectory__team=team, trajectory_id__in=wanted[start : start + 500])
        for trajectory, index in rows.order_by().values_list("trajectory_id", "index"):
            known.setdefault(trajectory, set()).add(index)
    problems = []
    for number, trajectory, ratings, first in found:
        if trajectory not in known:
            problems.append(f"line {number}: trajectory {trajectory} is none of this team, or has no turns")
            continue
        named = {int(index) for index in ratings} | ({first} if first is not None else set())
        if missing := named - known[trajectory]:
            problems.append(f"line {number}: trajectory {trajectory} has no turn with index {min(missing)}")
    return problems


MAX_TURN = 100_000


def export_ratings(team: Team, user: User) -> StreamingHttpResponse:
    """The file."""
    log_action(AuditAction.EXPORTED, person=user, team=team, kind="process labels")
    lines = [f"{line}\n".encode() for line in export_lines(team)]
    response = StreamingHttpResponse(iter(lines), content_type="application/x-ndjson; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="deskhand-process-labels.jsonl"'
    return response


def import_ratings(file: UploadedFile | None, *, team: Team, user: User, origin: str) -> int:
    """Store the ratings of an uploaded file and say so in the audit log. Raises BadValue."""
    if file is None or not file.size or file.size > MAX_UPLOAD_BYTES:
        raise BadValue("file", f"choose a file of JSON lines of at most {MAX_UPLOAD_BYTES // 1024**2} MiB")
    number = import_lines(file, team=team, user=user, origin=origin)
    log_action(AuditAction.IMPORTED, person=user, team=team, kind="process labels", lines=number)
    return number
