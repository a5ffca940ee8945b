"""Long work whose process ends badly: its row ends with the reason, or goes on with another process."""

import signal
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.urls import reverse
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_task, make_team, make_trajectory, make_user
from testing.replay_imports import check_lines
from webapp.accounts.models import Role
from webapp.attacks.models import ModelAttack
from webapp.dispatcher import child_work
from webapp.dispatcher.child_work import TRY_AGAIN, Children
from webapp.dispatcher.work_kinds import WorkKind, kinds
from webapp.experiments.models import CheckpointExport
from webapp.lib.long_work import MAX_LOST, BadEnd
from webapp.notifications.models import Delivery, NotificationRule
from webapp.notifications.services import deliveries
from webapp.replay.models import ReplayImport
from webapp.scanners.models import Scan
from webapp.scanners.queries.scanners import get_known
from webapp.scanners.services.scans import next_scan, start_scan
from webapp.trajectories.models import TurnRecord

pytestmark = pytest.mark.django_db(transaction=True)
ERROR = BadEnd("The process ended with code 1: ValueError: Unexpected value type", may_pass=False)
KILLED = BadEnd("The process was killed by SIGKILL.", may_pass=True)


@pytest.fixture
def scan() -> Scan:
    """One of a trajectory that nothing has read."""
    user = make_user(Role.OPERATOR)
    team = user.memberships.get().team
    row = make_trajectory(group=make_group(experiment=make_experiment(team=team)))
    known, slice_key = get_known(team, "loops.v1"), f"train-{row.experiment_id}"
    return start_scan(team=team, user=user, known=known, slice_key=slice_key, is_live=False, max_read=10)


@pytest.fixture
def children(child_environment, monkeypatch):
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, child_environment[name])
    monkeypatch.setattr(child_work, "RETRY_S", 0.0)
    found = Children()
    yield found
    found.stop()


def until_it_ends(children: Children, *, kills: bool = False) -> None:
    """The process that was started last is gone and its end is known."""
    child = children._running["scan"]
    if kills:
        child.process.kill()
    child.process.wait(120)
    children._is_busy(kinds["scan"])


def test_a_scan_whose_process_dies_of_an_exception_says_which_and_ends(client, scan, children, capfd):
    TurnRecord.objects.update(terms=7)
    children.go_on()
    until_it_ends(children)
    scan.refresh_from_db()
    assert scan.status == "failed"
    assert scan.message.startswith("The process ended with code 1: TypeError: ")
    assert "Traceback" in capfd.readouterr().err, "the log has all of it"
    client.force_login(scan.owner)
    page = client.get(reverse("scan-detail", args=[scan.pk])).content.decode()
    assert "The process ended with code 1: TypeError: " in page
    assert next_scan() is None


def test_a_killed_process_is_followed_by_others_until_they_are_too_many(scan, children):
    for number in range(1, MAX_LOST + 1):
        children.go_on()
        until_it_ends(children, kills=True)
        scan.refresh_from_db()
        assert "killed by SIGKILL" in scan.message
        assert scan.status == ("failed" if number == MAX_LOST else "queued")
    assert "3 processes died" in scan.message
    children.go_on()
    assert not children._running


def test_one_that_is_stopped_with_the_dispatcher_leaves_its_row_alone(scan, children):
    children.go_on()
    children.stop()
    scan.refresh_from_db()
    assert (scan.num_lost, scan.message) == (0, "")
    assert not scan.ended_at


def test_a_database_that_is_away_is_no_end(monkeypatch):
    from django.core.management import call_command
    from django.core.management.base import CommandError

    def is_locked(kind, pk, is_stopping):
        raise OperationalError("database is locked")

    monkeypatch.setattr(WorkKind, "run", is_locked)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(CommandError, match="database is locked") as error:
        call_command("run_work", "scan", "1")
    assert error.value.returncode == TRY_AGAIN
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_scan_that_goes_on_elsewhere_says_so_and_is_free_at_once(scan):
    Scan.objects.update(status="scanning", claim=1, heartbeat_at=timezone.now())
    ended = kinds["scan"].ended_badly
    assert next_scan() is None
    ended(scan.pk, KILLED)
    scan.refresh_from_db()
    assert (scan.status, scan.message) == ("scanning", f"{KILLED.why} Another one goes on.")
    assert next_scan() == scan.pk
    ended(scan.pk, ERROR)
    scan.refresh_from_db()
    assert (scan.status, scan.message) == ("failed", f"{ERROR.why} 2 processes died.")


def test_an_import_ends_with_the_error_or_goes_on_until_too_many_died():
    task = make_task()
    user = make_user(Role.ANNOTATOR)
    team = user.memberships.get().team
    ended = kinds["import"].ended_badly
    job = check_lines(lines=["{"], team=team, task_set=task.task_set, user=user)
    ReplayImport.objects.update(status="checking", ended_at=None, heartbeat_at=timezone.now())
    for number in range(1, MAX_LOST):
        ended(job.pk, KILLED)
        job.refresh_from_db()
        assert (job.status, job.num_lost) == ("checking", number)
        assert ReplayImport.next_waiting() == job.pk
    ended(job.pk, KILLED)
    job.refresh_from_db()
    assert job.status == "failed"
    assert job.message == f"{KILLED.why} 3 processes died near line 2; split the file."
    ReplayImport.objects.update(status="storing", ended_at=None, num_lost=0)
    ended(job.pk, ERROR)
    job.refresh_from_db()
    assert (job.status, job.message) == ("failed", ERROR.why)
    ReplayImport.objects.update(status="finished", message="", num_lost=0)
    ended(job.pk, KILLED)
    job.refresh_from_db()
    assert (job.status, job.message) == ("finished", ""), "what was done stays done"


@pytest.mark.parametrize(
    ("status", "end", "becomes"),
    [
        ("asking", ERROR, "failed"),
        ("asking", KILLED, "failed"),
        ("queued", ERROR, "failed"),
        ("queued", KILLED, "queued"),
        ("finished", ERROR, "finished"),
    ],
)
def test_a_model_attack_is_never_asked_twice(status, end, becomes):
    row = ModelAttack.objects.create(team=make_team(), task=make_task(), chat={}, status=status)
    kinds["model attack"].ended_badly(row.pk, end)
    row.refresh_from_db()
    assert row.status == becomes
    said = {"failed": f"{end.why} Ask again.", "queued": f"{end.why} Another one goes on.", "finished": ""}
    assert row.message == said[becomes]


def test_the_message_that_was_in_hand_is_given_up_and_others_go_on():
    team = make_team()
    rule = NotificationRule.objects.create(team=team, channel="browser", site_url="http://here")
    first, second = (
        Delivery.objects.create(team=team, rule=rule, kind="test", key=key, title=key, path="/")
        for key in ("a", "b")
    )
    claimed = deliveries.claim_next(())
    assert claimed.pk == first.pk
    ended = kinds["notification"].ended_badly
    ended(second.pk, ERROR)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, first.message) == ("failed", ERROR.why)
    assert (second.status, second.message) == ("waiting", "")
    deliveries.claim_next(())
    ended(first.pk, KILLED)
    second.refresh_from_db()
    assert (second.status, second.message) == ("waiting", KILLED.why)
    assert second.next_at > timezone.now() + timedelta(seconds=5), "it is tried again later"


STACK = ["Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n', "    g()\n", "    ^^^\n"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], ""),
        (
            ["\n", "CommandError: the database: it is locked\n", "\n"],
            "CommandError: the database: it is locked",
        ),
        (
            [*STACK, "ValueError: Unexpected value type for 'text': dict\n"],
            "ValueError: Unexpected value type for 'text': dict",
        ),
        (
            [
                *STACK,
                "ValidationError: 1 error for X\n",
                "kind\n",
                "  Field required\n",
                "    See https://x\n",
                "more\n",
            ],
            "ValidationError: 1 error for X kind Field required See https://x",
        ),
        (
            [*STACK, "KeyError: 'a'\n", "\n", "During handling ...\n", "\n", *STACK, "OSError: gone\n"],
            "OSError: gone",
        ),
        ([*STACK, "MemoryError\n"], "MemoryError"),
        ([*STACK], "^^^"),
    ],
)
def test_the_reason_is_the_exception_and_not_the_end_of_its_message(said, reason):
    assert child_work.reason_in(said) == reason


@pytest.mark.parametrize("rows", [*(kind.rows for kind in kinds.values()), CheckpointExport])
def test_every_status_of_a_kind_has_its_row_and_every_work_an_end(rows):
    statuses = {value for value, _ in rows._meta.get_field("status").choices}
    assert set(rows.TRANSITIONS) == statuses
    for begins, works in rows.BEGINS.items():
        assert works in rows.TRANSITIONS[begins]
        assert "failed" in rows.TRANSITIONS[works]
        assert rows.AFTER_LOSS.get(works, works) in {works, *rows.TRANSITIONS[works]}
