"""Reads the file of an import: once to tell what is new, known and bad, and again to store what is new.

Lines come in batches. A batch is stored with the note of how far the file was read, in one transaction:
after a process died the next one goes on behind the last batch, and nothing comes in twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.core.files.storage import default_storage
from django.db import transaction

from webapp.dispatcher.work_kinds import kinds
from webapp.lib.long_work import WorkRefused
from webapp.lib.request_values import BadValue
from webapp.replay.formats.contract import Batch, UnreadableFile
from webapp.replay.formats.conversation import ReadProblem
from webapp.replay.formats.images import ImageProblem
from webapp.replay.formats.registry import format_of
from webapp.replay.imports.content_keys import key_of_record, known_keys
from webapp.replay.imports.known_tasks import KnownTasks
from webapp.replay.imports.read_record import read_record
from webapp.replay.models import ImportStatus, ReplayImport
from webapp.replay.services import imports
from webapp.replay.services.imported_records import Record, store_record

MAX_LISTED = 100
"""Of known lines; all are counted."""
MAX_BAD = 1000
"""As many end the check; all up to then are listed."""


def batches(job: ReplayImport) -> Iterator[Batch]:
    """The rest of the file. Raises FileNotFoundError, UnreadableFile."""
    with default_storage.open(job.path, "rb") as file:
        yield from format_of(file.read(4)).batches(file, job)


def unpacks(job: ReplayImport) -> bool:
    """Whether it may unpack to any size. A file that is gone is found out by reading it."""
    if not default_storage.exists(job.path):
        return False
    with default_storage.open(job.path, "rb") as file:
        return format_of(file.read(4)).unpacks


@dataclass(slots=True)
class Reader:
    """Lines of one import as records."""

    job: ReplayImport
    tasks: KnownTasks
    keep_images: bool

    def read(self, batch: Batch) -> tuple[dict[int, Record], dict[int, str]]:
        """(line -> record, line -> what is wrong with it)"""
        records: dict[int, Record] = {}
        problems: dict[int, str] = {}
        for number, row in batch.rows.items():
            try:
                records[number] = read_record(row(), self.job.team, self.tasks, keep_images=self.keep_images)
            except (ReadProblem, ImageProblem, BadValue) as problem:
                problems[number] = str(problem)
        return records, problems


AT_ONCE_BYTES = 32_000
"""A file of lines up to this size is read within the request: a process for it takes longer to start."""


def run_small_import(job: ReplayImport) -> None:
    """Do at once what was asked of a small file; a larger one, and what unpacks, waits for the dispatcher."""
    if job.size_bytes <= AT_ONCE_BYTES and not unpacks(job):
        kinds["import"].run(job.pk)
        job.refresh_from_db()


def read_file(job: ReplayImport) -> Iterator[object]:
    """Read it until the end; yields after each batch. Raises WorkRefused."""
    if job.task_set is None or job.owner is None:
        what = "task set" if job.task_set is None else "account of its owner"
        raise WorkRefused(f"The {what} is gone; upload the file again.")
    is_check = job.status == ImportStatus.CHECKING
    tasks = KnownTasks.of(job.team, job.task_set, takes_unknown=job.takes_unknown)
    reader = Reader(job, tasks, keep_images=not is_check)
    try:
        yield from check_file(reader) if is_check else store_file(reader)
    except FileNotFoundError as error:
        raise WorkRefused("Its file is gone from the disk; upload it again.") from error
    except UnreadableFile as error:
        raise WorkRefused(f"{error} Upload another file.") from error


def check_file(reader: Reader) -> Iterator[object]:
    """Count what is new, known and bad; stores nothing. Yields after each batch."""
    job, seen = reader.job, set[str]()
    for batch in batches(job):
        records, problems = reader.read(batch)
        present = known_keys(job.team, records.values())
        known: list[list[int]] = []
        for number, record in records.items():
            key = key_of_record(record)
            if key in present or key in seen:
                known.append([number, present.get(key, 0)])
            seen.add(key)
        job.beat(
            done_bytes=batch.done_bytes,
            done_lines=batch.done_lines,
            num_new=job.num_new + len(records) - len(known),
            num_known=job.num_known + len(known),
            num_bad=job.num_bad + len(problems),
            known=[*job.known, *known][:MAX_LISTED],
            problems=[*job.problems, *map(list, problems.items())][:MAX_BAD],
        )
        if job.num_bad >= MAX_BAD:
            raise WorkRefused(f"{job.num_bad} lines are bad: this is no file of this format.")
        yield batch
    imports.finish_check(job=job)


def store_file(reader: Reader) -> Iterator[object]:
    """Store what is new, behind what was stored already. Yields after each batch."""
    job = reader.job
    assert job.owner is not None
    for batch in batches(job):
        records, _ = reader.read(batch)
        present = known_keys(job.team, records.values())
        fresh: dict[str, Record] = {}
        for record in records.values():
            key = key_of_record(record)
            if key not in present:
                fresh.setdefault(key, record)
        with transaction.atomic():
            for record in fresh.values():
                record.task = reader.tasks.save(record.task)
                store_record(record, job.team, job.owner, job.keep_labels)
            job.beat(
                done_bytes=batch.done_bytes,
                done_lines=batch.done_lines,
                num_stored=job.num_stored + len(fresh),
            )
        yield batch
    imports.finish_import(job=job)
