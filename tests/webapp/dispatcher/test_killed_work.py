"""Processes of long work that are killed in the middle: their rows say so."""

import socket
import time
from collections.abc import Iterator

import pytest
from django.urls import reverse

from testing.factories import make_task, make_team, make_user
from testing.replay_imports import check_lines
from tests.webapp.replay.test_import_jobs import lines_of
from webapp.accounts.models import Role
from webapp.attacks.models import ModelAttack
from webapp.dispatcher import child_work
from webapp.dispatcher.child_work import Children
from webapp.dispatcher.work_kinds import kinds
from webapp.lib.long_work import LongWork
from webapp.notifications.models import Delivery, NotificationRule
from webapp.replay.services.imports import approve_import

pytestmark = pytest.mark.django_db(transaction=True)
KILLED = "The process was killed by SIGKILL."


@pytest.fixture
def children(child_environment, monkeypatch) -> Iterator[Children]:
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, child_environment[name])
    monkeypatch.setenv("DESKHAND_REMOTE_NETWORKS", "127.0.0.0/8")
    monkeypatch.setattr(child_work, "RETRY_S", 0.0)
    found = Children()
    yield found
    found.stop()


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def kill_while_it_works(children: Children, kind: str, row: LongWork) -> None:
    """Kill its process once it has the row, and learn of it."""
    deadline = time.monotonic() + 120
    while kind not in children._running:
        assert time.monotonic() < deadline
        time.sleep(0.02)
        children.go_on()
    process = children._running[kind].process
    while row.status not in row.BEGINS.values():
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
        row.refresh_from_db()
    process.kill()
    process.wait()
    children._is_busy(kinds[kind])
    row.refresh_from_db()


def test_a_killed_import_goes_on_and_says_so_on_its_page(client, children):
    task = make_task()
    user = make_user(Role.ANNOTATOR)
    team = user.memberships.get().team
    job = check_lines(lines=lines_of(task, 400), team=team, task_set=task.task_set, user=user)
    assert approve_import(job=job, user=user)
    kill_while_it_works(children, "import", job)
    assert (job.status, job.message, job.num_lost) == ("storing", f"{KILLED} Another one goes on.", 1)
    client.force_login(user)
    assert KILLED in client.get(reverse("replay-import", args=[job.pk])).content.decode()
    assert kinds["import"].next_waiting() == job.pk


def test_a_killed_model_attack_ends_with_the_reason_on_its_page(client, children, silent_server):
    task = make_task()
    user = make_user(Role.OPERATOR)
    team = user.memberships.get().team
    chat = {"url": silent_server, "model": "m", "secret": ""}
    row = ModelAttack.objects.create(team=team, task=task, owner=user, chat=chat)
    kill_while_it_works(children, "model attack", row)
    assert (row.status, row.message) == ("failed", f"{KILLED} Ask again.")
    assert row.ended_at
    client.force_login(user)
    page = client.get(f"/tasks/{task.task_set.name}/{task.pk}/attacks/").content.decode()
    assert KILLED in page


def test_a_killed_delivery_is_tried_again_later_and_the_log_says_why(client, children, silent_server):
    user = make_user(Role.ADMIN, team=make_team("home"))
    team = user.memberships.get().team
    rule = NotificationRule.objects.create(
        team=team, channel="webhook", target=silent_server, site_url="http://here"
    )
    row = Delivery.objects.create(team=team, rule=rule, kind="test", key="a", title="A", path="/")
    kill_while_it_works(children, "notification", row)
    assert (row.status, row.message, row.num_tries) == ("waiting", KILLED, 1)
    assert kinds["notification"].next_waiting() is None, "not before its pause"
    client.force_login(user)
    assert KILLED in client.get(reverse("notification-list")).content.decode()
