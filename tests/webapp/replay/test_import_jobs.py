"""Imports as jobs: checked first, stored in batches, gone on with after a death, cancelled, reported."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from testing.factories import make_task, make_team, make_trajectory, make_user
from testing.paths import REPOSITORY
from testing.replay_imports import check_lines
from tests.webapp.replay.test_transfer import line
from webapp.accounts.models import AuditAction, AuditEntry, Role, Team
from webapp.dispatcher.child_work import Children
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskRecord
from webapp.lib.long_work import MAX_LOST, SILENT
from webapp.replay.formats.lines import read_lines
from webapp.replay.formats.slime_export import export_line
from webapp.replay.models import ImportStatus, ReplayEntry, ReplayImport
from webapp.replay.services import imports
from webapp.replay.services.inbox import offer_to_inbox
from webapp.trajectories.models import Frame

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task() -> TaskRecord:
    return make_task()


def lines_of(task: TaskRecord, number: int, start: int = 0) -> list[str]:
    """Entries that differ by where they click."""
    return [
        line(task, call=json.dumps({"action": "left_click", "coordinate": [place % 500, place // 500]}))
        for place in range(start, start + number)
    ]


def recorded(team: Team) -> ReplayEntry:
    """An entry that came by the inbox, as those do that are exported."""
    return offer_to_inbox(trajectory=make_trajectory(team=team, turns=2))


def checked(task: TaskRecord, lines: list[str]) -> ReplayImport:
    team = make_team()
    return check_lines(
        lines=lines, team=team, task_set=task.task_set, user=make_user(Role.ANNOTATOR, team=team)
    )


def start(job: ReplayImport) -> None:
    assert imports.approve_import(job=job, user=job.owner)


def entries(job: ReplayImport) -> int:
    return ReplayEntry.objects.filter(team=job.team).count()


def test_a_check_stores_nothing_and_tells_new_known_and_bad(task: TaskRecord) -> None:
    own = recorded(make_team())
    task = own.trajectory.task
    other = lines_of(task, 2)
    num_frames = Frame.objects.count()
    lines = [export_line(own), other[0], "", line(task, reward="high"), other[1], other[0]]
    user = make_user(Role.ANNOTATOR, team=own.team)
    job = check_lines(lines=lines, team=own.team, task_set=task.task_set, user=user)
    assert (job.status, job.num_new, job.num_known, job.num_bad) == ("checked", 2, 2, 1)
    assert job.known == [[1, own.pk], [6, 0]]
    assert job.problems == [[4, "reward: not a number: high"]]
    assert (ReplayEntry.objects.count(), Frame.objects.count()) == (1, num_frames)
    path = job.path
    start(job)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_stored, job.message, job.path) == ("finished", 2, "", "")
    assert not default_storage.exists(path)
    event = AuditEntry.objects.get(action=AuditAction.IMPORTED)
    assert event.detail == {"entries": 2, "known": 2, "bad": 1}


def test_ones_own_export_holds_nothing_new(task: TaskRecord) -> None:
    own = recorded(make_team())
    user = make_user(Role.ANNOTATOR, team=own.team)
    job = check_lines(
        lines=[export_line(own)], team=own.team, task_set=own.trajectory.task.task_set, user=user
    )
    assert (job.status, job.message) == ("finished", "Everything in it that can be read is here already.")
    assert not imports.approve_import(job=job, user=user)


def test_what_is_here_twice_is_known_by_the_older_entry() -> None:
    team = make_team()
    first = recorded(team)
    again = offer_to_inbox(trajectory=make_trajectory(group=first.trajectory.group, turns=2))
    task_set, user = first.trajectory.task.task_set, make_user(Role.ANNOTATOR, team=team)
    job = check_lines(lines=[export_line(again)], team=team, task_set=task_set, user=user)
    assert job.known == [[1, first.pk]]


def test_a_file_without_a_good_line_fails(task: TaskRecord) -> None:
    job = checked(task, ["{", "\N{DEGREE SIGN}"])
    assert (job.status, job.message, job.num_bad) == ("failed", "No line of it can be read.", 2)


def test_a_file_of_another_kind_is_given_up_early(task: TaskRecord) -> None:
    job = checked(task, ["x"] * 5000)
    assert job.status == "failed"
    assert job.num_bad < 5000
    assert "this is no file of this format" in job.message


def test_nothing_of_it_comes_after_a_cancellation(task: TaskRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_lines, "BATCH_LINES", 2)
    job = checked(task, lines_of(task, 6))
    start(job)
    steps = iter([False])

    def cancel_after_the_first_batch() -> bool:
        if next(steps, None) is None:
            return False
        return not job.cancel()

    kinds["import"].run(job.pk, cancel_after_the_first_batch)
    job.refresh_from_db()
    assert (job.status, job.num_stored, entries(job)) == ("cancelled", 2, 2)
    assert not job.cancel()


def test_a_process_that_was_taken_for_dead_stores_nothing_more(
    task: TaskRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_lines, "BATCH_LINES", 2)
    job = checked(task, lines_of(task, 6))
    start(job)

    def another_takes_it() -> bool:
        ReplayImport.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
        kinds["import"].run(job.pk)
        return False

    kinds["import"].run(job.pk, another_takes_it)
    job.refresh_from_db()
    assert (job.status, job.num_stored, entries(job), job.num_lost) == ("finished", 6, 6, 1)


def test_a_stopped_process_leaves_the_rest_to_the_next_one(
    task: TaskRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_lines, "BATCH_LINES", 2)
    job = checked(task, lines_of(task, 6))
    start(job)
    kinds["import"].run(job.pk, lambda: True)
    assert entries(job) == 2
    assert ReplayImport.next_waiting() == job.pk
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_stored, entries(job), job.num_lost) == ("finished", 6, 6, 0)


def test_a_file_that_kills_its_reader_is_given_up(task: TaskRecord) -> None:
    job = checked(task, lines_of(task, 1))
    start(job)
    for _ in range(MAX_LOST):
        assert ReplayImport.take(job.pk)
        ReplayImport.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert ReplayImport.take(job.pk) is None
    job.refresh_from_db()
    assert job.status == "failed"
    assert job.message == f"{SILENT} 3 processes died near line 1; split the file."


def test_a_killed_process_is_followed_by_one_that_stores_the_rest_once(
    task: TaskRecord, child_environment: dict[str, str]
) -> None:
    job = checked(task, lines_of(task, 400))
    start(job)
    command = [sys.executable, "manage.py", "run_work", "import", str(job.pk)]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=child_environment)
    deadline = time.monotonic() + 120
    while not (stored := entries(job)):
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    stored = entries(job)
    job.refresh_from_db()
    assert job.status == "storing"
    assert 0 < job.num_stored == stored < 400
    assert ReplayImport.next_waiting() is None, "its heartbeat is fresh"
    ReplayImport.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_stored, entries(job), job.num_lost) == ("finished", 400, 400, 1)


def test_the_dispatcher_starts_a_process_for_the_next_one(
    task: TaskRecord, child_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, child_environment[name])
    job = checked(task, lines_of(task, 3))
    start(job)
    children = Children()
    deadline = time.monotonic() + 120
    try:
        while job.status != ImportStatus.FINISHED:
            assert time.monotonic() < deadline
            children.go_on()
            time.sleep(0.02)
            job.refresh_from_db()
    finally:
        children.stop()
    assert entries(job) == 3


def test_a_checked_import_that_no_one_wants_is_cancelled(task: TaskRecord) -> None:
    job = checked(task, lines_of(task, 1))
    assert list(imports.forget_old_imports()) == []
    ReplayImport.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(days=8))
    list(imports.forget_old_imports())
    job.refresh_from_db()
    assert (job.status, job.path) == ("cancelled", "")
