"""JSON lines of Slime-OSWorld's replay format -> replay entries. All of a file or nothing of it.

Every problem names its line and field. Records that we exported bring their exact turns along; others are
read from their messages. A missing reward counts as 1.0 and is tagged `assumed-reward`.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from webapp.accounts.models import Team
from webapp.experiments.models import TaskSet
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


def import_lines(
    *, lines: Iterable[str], team: Team, task_set: TaskSet, user: User, keep_labels: bool = False
) -> list[ReplayEntry]:
    """Check every line, then store all entries; they wait in the inbox unless `keep_labels`.

    Raises ImportRefused, with nothing but frames stored.
    """
    records: list[Record] = []
    problems: list[str] = []
    tasks = {task.task_id: task for task in task_set.tasks.all()}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if number > MAX_RECORDS:
            raise ImportRefused([f"line {number}: at most {MAX_RECORDS} lines; split the file"])
        try:
            records.append(read_record(line, team, tasks, task_set))
        except (ReadProblem, ImageProblem) as problem:
            problems.append(f"line {number}: {problem}")
            if len(problems) >= MAX_PROBLEMS:
                break
    if not records and not problems:
        problems.append("line 1: the file is empty")
    if problems:
        raise ImportRefused(problems)
    with transaction.atomic():
        return [store_record(record, team, user, keep_labels) for record in records]
