"""JSON lines of Slime-OSWorld's replay format -> replay entries. All of a file or nothing of it.

Every problem names its line and field. Records that we exported bring their exact turns along; others are
read from their messages. What the team has already is recognised by its content and left out. A missing
reward counts as 1.0 and is tagged `assumed-reward`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Team
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue
from webapp.replay.content_keys import key_of_record, known_keys
from webapp.replay.import_images import ImageProblem
from webapp.replay.imported_messages import ReadProblem
from webapp.replay.imported_rows import store_record
from webapp.replay.models import ReplayEntry
from webapp.replay.read_slime_record import Record, read_record

MAX_PROBLEMS = 50
MAX_RECORDS = 10_000


class ImportRefused(ValueError):
    """Raised when a file has problems; `problems` are sentences that start with "line N: field:"."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class Plan:
    """What an import would do."""

    fresh: list[Record]
    """Records that the team does not have."""
    known: dict[int, int]
    """Line -> id of the entry that holds the same already; 0: an earlier line of the file does."""


def import_lines(
    *, lines: Iterable[str], team: Team, task_set: TaskSet, user: User, keep_labels: bool = False
) -> list[ReplayEntry]:
    """Store what is new in a file; entries wait in the inbox unless `keep_labels`.

    Raises ImportRefused, with nothing but frames stored.
    """
    return store_plan(plan_import(lines=lines, team=team, task_set=task_set), team, user, keep_labels)


def store_plan(plan: Plan, team: Team, user: User, keep_labels: bool) -> list[ReplayEntry]:
    """All of it or nothing."""
    with transaction.atomic():
        stored = [store_record(line, team, user, keep_labels) for line in plan.fresh]
        detail = {"entries": len(stored), "known": len(plan.known)}
        log_action(AuditAction.IMPORTED, person=user, team=team, kind="entry", **detail)
        return stored


def plan_import(*, lines: Iterable[str], team: Team, task_set: TaskSet) -> Plan:
    """Check every line, and recognise what the team has already. Raises ImportRefused."""
    records = _checked_records(lines, team, task_set)
    present = known_keys(team, records.values())
    fresh, known = [], {}
    for number, record in records.items():
        key = key_of_record(record)
        if key in present:
            known[number] = present[key]
        else:
            present[key] = 0
            fresh.append(record)
    return Plan(fresh, known)


def _checked_records(lines: Iterable[str], team: Team, task_set: TaskSet) -> dict[int, Record]:
    """Line -> record. Raises ImportRefused with every problem."""
    records: dict[int, Record] = {}
    problems: list[str] = []
    tasks = {task.task_id: task for task in task_set.tasks.all()}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if number > MAX_RECORDS:
            raise ImportRefused([f"line {number}: at most {MAX_RECORDS} lines; split the file"])
        try:
            records[number] = read_record(line, team, tasks, task_set)
        except (ReadProblem, ImageProblem, BadValue) as problem:
            problems.append(f"line {number}: {problem}")
            if len(problems) >= MAX_PROBLEMS:
                break
    if not records and not problems:
        problems.append("line 1: the file is empty")
    if problems:
        raise ImportRefused(problems)
    return records
