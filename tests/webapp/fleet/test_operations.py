"""Operators: who may, what is refused, what becomes of it, and that it is written down."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_team, make_trajectory, make_user
from testing.fleet_rows import make_desktop, make_host, make_worker
from training.contracts.types import TrajectoryStatus
from webapp.accounts.models import Role
from webapp.fleet.models import Desktop, Host, Operation, OperationStatus, Verb, Worker
from webapp.fleet.queries.env_capacity import count_env_slots, env_capacity
from webapp.fleet.services import operations
from webapp.fleet.services.workers import beat_worker
from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries.desktop_demand import waiting_desktops
from webapp.trajectories.services.trajectories import hand_back_job, live_on_desktop, take_away

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client: Client) -> User:
    user = make_user(Role.OPERATOR, team=make_team(), name="ann")
    client.force_login(user)
    return user


def test_an_operator_asks_and_the_row_says_who_what_and_why(client: Client, ann: User):
    make_desktop("d1", host="h7")
    answer = client.post(
        "/fleet/desktops/d1/quarantine/", {"reason": " froze ", "next": "/fleet/?phase=dead"}
    )
    assert answer["Location"] == "/fleet/?phase=dead"
    asked = Operation.objects.get()
    assert (asked.verb, asked.target, asked.host, asked.reason) == ("quarantine", "d1", "h7", "froze")
    assert (asked.asked_by, asked.asked_by_name, asked.status) == (ann, "ann", "asked")


@pytest.mark.parametrize("wanted", ["https://evil.example/fleet/", "//evil.example", "/replay/", ""])
def test_the_way_back_leads_nowhere_else(client: Client, ann: User, wanted: str):
    make_desktop("d1")
    assert client.post("/fleet/desktops/d1/kill/", {"next": wanted})["Location"] == "/fleet/"


def test_what_makes_no_sense_is_refused_in_words(client: Client, ann: User):
    make_desktop("d1")
    make_desktop("old", phase="gone")
    make_desktop("far", mirrored_at=None)
    for name, verb, words in (
        ("d1", "quarantine", "say why"),
        ("old", "kill", "gone already"),
        ("far", "restart", "remote service"),
    ):
        page = client.post(f"/fleet/desktops/{name}/{verb}/", {"reason": ""}, follow=True).content.decode()
        assert words in page, name
    assert not Operation.objects.exists()
    client.post("/fleet/desktops/d1/kill/")
    page = client.post("/fleet/desktops/d1/restart/", follow=True).content.decode()
    assert "still under way" in page
    assert client.post("/fleet/desktops/d1/explode/").status_code == 404
    assert client.get("/fleet/desktops/d1/kill/").status_code == 405


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ANNOTATOR])
def test_lower_roles_change_nothing(client: Client, role: str):
    client.force_login(make_user(role))
    make_desktop("d1")
    worker, host = make_worker(), make_host()
    for path in ("desktops/d1/kill", f"workers/{worker.pk}/drain", f"hosts/{host.pk}/drain"):
        assert client.post(f"/fleet/{path}/", {"on": "1"}).status_code == 403
    assert not Operation.objects.exists()
    assert not Worker.objects.get().is_draining


def test_a_draining_worker_counts_for_no_new_work_and_stays_so_when_it_comes_back(client: Client, ann: User):
    worker = make_worker("env1@h1", slots=4)
    make_worker("env2@h1", slots=2)
    client.post(f"/fleet/workers/{worker.pk}/drain/", {"on": "1"})
    assert env_capacity() == (2, 1)
    again = beat_worker(name="env1@h1", queue="env", host="h1", pid=99, slots=4, version="1")
    assert again.is_draining, "a restart does not undrain"
    client.post(f"/fleet/workers/{worker.pk}/drain/", {"on": "0"})
    assert count_env_slots() == 6
    assert [(o.verb, o.status) for o in Operation.objects.order_by("id")] == [
        ("drain", "done"),
        ("undrain", "done"),
    ]


def test_a_draining_host_drains_its_workers_and_those_that_join(client: Client, ann: User):
    host = make_host("h1")
    make_worker("env1@h1")
    make_worker("env1@h2", host="h2")
    client.post(f"/fleet/hosts/{host.pk}/drain/", {"on": "1"})
    joined = make_worker("env9@h1")
    assert joined.is_draining
    assert not Worker.objects.get(name="env1@h2").is_draining
    assert Host.objects.get().is_draining
    client.post(f"/fleet/hosts/{host.pk}/drain/", {"on": "0"})
    assert not Worker.objects.filter(is_draining=True).exists()


def test_operations_are_taken_once_ended_once_and_expire_when_nobody_takes_them(ann: User):
    desktop = make_desktop("d1", host="h1")
    operations.request_operation(desktop=desktop, verb=Verb.KILL, user=ann)
    assert operations.take_operations(host="h2") == []
    (taken,) = operations.take_operations(host="h1")
    assert operations.take_operations(host="h1") == []
    operations.end_operation(operation=taken, status=OperationStatus.DONE, outcome="ended")
    operations.end_operation(operation=taken, status=OperationStatus.FAILED, outcome="too late")
    assert Operation.objects.get().outcome == "ended"

    operations.request_operation(desktop=desktop, verb=Verb.RESTART, user=ann)
    assert operations.expire_operations() == 0
    Operation.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    assert operations.expire_operations() == 1
    expired = Operation.objects.get(verb="restart")
    assert (expired.status, "is one alive?" in expired.outcome) == ("expired", True)
    operations.request_operation(desktop=desktop, verb=Verb.RESTART, user=ann)


def test_a_trajectory_whose_desktop_is_taken_is_errored_and_run_again():
    desktop = make_desktop("d1")
    running = make_trajectory(desktop=desktop, status="running")
    make_trajectory(desktop=desktop)
    assert live_on_desktop("d1") == [running.pk]
    assert take_away(trajectory_id=running.pk, error="killed by ann")
    running.refresh_from_db()
    assert (running.status, running.error_kind, running.reward) == ("errored", "desktop_operator", None)
    assert running.retries.get().status == TrajectoryStatus.QUEUED
    assert not take_away(trajectory_id=running.pk, error="again")
    assert Desktop.objects.get().phase == "leased", "rows of desktops are the mirror's"


def test_a_job_that_a_draining_worker_got_waits_again():
    waiting = make_trajectory(status="queued", sent_at=timezone.now())
    running = make_trajectory(status="running", sent_at=timezone.now())
    for trajectory in (waiting, running):
        hand_back_job(trajectory_id=trajectory.pk)
    assert Trajectory.objects.get(pk=waiting.pk).sent_at is None
    assert Trajectory.objects.get(pk=running.pk).sent_at is not None


def test_queued_trajectories_say_what_desktops_they_want():
    for _ in range(3):
        make_trajectory(status="queued")
    make_trajectory(status="running")
    assert waiting_desktops() == {("x11", 512, 384): 3}


def test_trajectories_above_their_experiments_limit_want_no_desktop_yet():
    config = {"desktops": {"provider": "qemu", "num_desktops": 2}}
    experiment = make_experiment(config=config)
    make_trajectory(experiment=experiment, status="running")
    for _ in range(3):
        make_trajectory(experiment=experiment, status="queued")
    assert waiting_desktops() == {("qemu", 512, 384): 1}


def test_another_team_operates_only_what_works_for_it(client: Client, ann: User):
    """Ann's team is the first one, and so the fleet's."""
    bob = make_user(Role.OPERATOR, team=make_team(), name="bob")
    team = bob.memberships.get().team
    idle, theirs, own = (make_desktop(name, host="h7") for name in ("d1", "d2", "d3"))
    make_trajectory(desktop=theirs, status=TrajectoryStatus.RUNNING)
    make_trajectory(team=team, desktop=own, status=TrajectoryStatus.RUNNING)
    client.force_login(bob)
    for desktop in (idle, theirs):
        assert client.post(f"/fleet/desktops/{desktop.name}/restart/").status_code == 403
        assert "operate_dialog" not in client.get(f"/fleet/desktops/{desktop.name}/").content.decode()
    assert client.post("/fleet/desktops/d3/quarantine/", {"reason": "mine"}).status_code == 403
    assert not Operation.objects.exists()
    assert client.post("/fleet/desktops/d3/restart/").status_code == 302
    assert Operation.objects.get().target == "d3"


def test_the_installation_names_the_teams_of_its_fleet(client: Client, ann: User, settings):
    bob = make_user(Role.OPERATOR, team=make_team(), name="bob")
    settings.FLEET_TEAMS = [bob.memberships.get().team.name]
    make_desktop("d1", host="h7")
    assert client.post("/fleet/desktops/d1/restart/").status_code == 403
    client.force_login(bob)
    assert client.post("/fleet/desktops/d1/restart/").status_code == 302
