"""Rounds of the mirror with a desk host that says what a test sets: what each asks, does and tells."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from testing.factories import make_trajectory, make_user
from testing.fleet_rows import make_worker
from testing.workers.intercepted_reports import intercepted
from testing.workers.reported_host import ReportedHost
from webapp.fleet.models import Desktop, Host, Operation, Verb
from webapp.fleet.services import mirror_claims
from webapp.fleet.services.operations import drain_host, request_operation
from webapp.live.models import Event
from webapp.trajectories.models import Trajectory
from webapp.worker_door import host_mirror
from workers.desktops.host.messages import BootFailure, KeptSnapshot, Phase
from workers.fleet import desk_host_mirror
from workers.fleet.desk_host_mirror import Mirror

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> ReportedHost:
    reported = ReportedHost()
    reported.show("d1")
    return reported


@pytest.fixture
def mirror(host: ReportedHost) -> Mirror:
    """It has made its first rounds."""
    make_worker("env1@h1", slots=2)
    found = Mirror(host, host="h1", name="env1@h1")  # type: ignore[arg-type]
    assert found.step()
    assert found.step()
    host.told.clear()
    return found


def test_a_quiet_round_is_one_statement(mirror: Mirror):
    with CaptureQueriesContext(connection) as queries:
        assert mirror.step()
    assert len(queries) == 1


def test_each_round_renews_the_claim_and_says_that_the_desk_host_answered(mirror: Mirror):
    long_ago = timezone.now() - timedelta(seconds=3)
    Host.objects.update(mirrored_at=long_ago, heartbeat_at=long_ago)
    mirror.step()
    host = Host.objects.get()
    assert host.mirrored_at > long_ago
    assert host.heartbeat_at > long_ago


def test_a_desk_host_that_is_away_has_not_answered(host: ReportedHost, mirror: Mirror):
    host.is_away = True
    assert not mirror.step()
    assert "does not answer" in Host.objects.get().problem
    heard_at = Host.objects.get().heartbeat_at
    assert not mirror.step()
    assert Host.objects.get().heartbeat_at == heard_at
    host.is_away = False
    assert mirror.step()
    assert Host.objects.get().problem == ""
    assert Host.objects.get().heartbeat_at > heard_at


def test_operations_are_carried_out_in_the_next_round_without_waiting_for_a_change(
    host: ReportedHost, mirror: Mirror
):
    request_operation(desktop=Desktop.objects.get(), verb=Verb.KILL, user=make_user())
    mirror.step()
    assert Operation.objects.get().status == "done"
    assert host.waits_s[-1] == 0.0
    mirror.step()
    assert Desktop.objects.get().phase == "gone"
    assert host.waits_s[-1] == desk_host_mirror.WATCH_S


def test_a_kill_is_carried_out_while_nothing_can_be_recorded(host: ReportedHost, mirror: Mirror):
    host.show("d2")
    mirror.step()
    ann = make_user()
    for desktop in Desktop.objects.order_by("name"):
        request_operation(desktop=desktop, verb=Verb.KILL, user=ann)
    host.machine = host.machine.model_copy(update={"cores": 2**31})
    mirror._teller.forget()

    def first_is_lost(operation_id, outcome, *, is_done):
        if Operation.objects.get(pk=operation_id).target == "d1":
            raise DatabaseError("the outcome cannot be stored")
        host_mirror.end_operation(operation_id, outcome, is_done=is_done)

    with intercepted(end_operation=first_is_lost), pytest.raises(DatabaseError):
        mirror.step()
    assert host.desktops == {}
    assert [*Operation.objects.order_by("id").values_list("target", "status")] == [
        ("d1", "running"),
        ("d2", "done"),
    ]


def test_what_a_program_of_a_desktop_writes_stops_no_round(host: ReportedHost, mirror: Mirror):
    """One that names itself as it likes is left out; the others are told of as before."""
    host.show("d1", phase=Phase.QUARANTINED, log="a\x00b\n\udc80", reason="\x00")
    host.show("d2", phase=Phase.STARTING, boot_phase="template: agent_up, 12 s, attempt 2")
    host.show("x" * 65)
    host.show("d3", lease_id="l", holder=f"env1@h1/{'t' * 300}\x00")
    host.failures = [
        BootFailure(
            number=1, at=time.time(), desktop_id="d\x00" * 40, provider="x" * 30, boot_phase="b" * 90,
            reason="\x00", log="\x00", screenshot="",
        )
    ]  # fmt: skip
    assert mirror.step()
    told = {row.name: row for row in Desktop.objects.all()}
    assert sorted(told) == ["d1", "d2", "d3"]
    assert told["d1"].log == "a\N{SYMBOL FOR NULL}b\n\N{REPLACEMENT CHARACTER}"
    assert told["d2"].boot_phase == "template: agent_up, 12 s, attempt 2"
    assert (told["d3"].holder[-2:], told["d3"].worker is not None) == ("t…", True)
    del host.desktops["x" * 65]
    mirror._teller.forget()
    mirror.step()
    num_events = Event.objects.filter(stream="fleet").count()
    mirror._teller.forget()
    mirror.step()
    assert Host.objects.get().boot_failures.count() == 1
    assert Event.objects.filter(stream="fleet").count() == num_events, "nothing has changed for people"


def test_a_drain_is_followed_in_the_next_round_and_its_end_too(host: ReportedHost, mirror: Mirror):
    drain_host(host=Host.objects.get(), on=True, user=make_user())
    mirror.step()
    mirror.step()
    drain_host(host=Host.objects.get(), on=False, user=make_user("operator", name="bob"))
    mirror.step()
    assert host.told == [("drain", True), ("drain", False)]


def test_what_the_queue_wants_is_announced_until_no_slot_is_free(host: ReportedHost, mirror: Mirror):
    for _ in range(3):
        make_trajectory(status="queued")
    mirror.step()
    assert host.told == [("expect", "x11", 2)], "no more than there are slots"
    for number in range(2):
        host.show(f"l{number}", phase=Phase.LEASED, lease_id=f"l{number}", holder="env1@h1/t0")
    mirror.step()
    mirror.step()
    assert host.told[1:] == [("expect", "x11", 0)], "told once, and the queue is not read for it"
    host.end("l0")
    mirror.step()
    assert host.told[2:] == [("expect", "x11", 1)]
    Trajectory.objects.update(status="cancelled")
    mirror.step()
    assert len(host.told) == 3


def test_a_mirror_that_was_taken_over_stands_by_and_then_tells_everything(mirror: Mirror):
    Host.objects.update(mirrored_at=timezone.now() - timedelta(seconds=20))
    assert mirror_claims.claim_mirror(host="h1", by="env2@h1")
    assert not mirror.step()
    Desktop.objects.update(phase="dead")
    assert not mirror.step()
    Host.objects.update(mirrored_at=timezone.now() - timedelta(seconds=20))
    assert mirror.step()
    assert Desktop.objects.get().phase == "ready"


def test_snapshots_are_compared_when_one_has_come_or_gone_and_now_and_then(
    host: ReportedHost, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
):
    asked = []

    def unknown_snapshots(_host, created, _asked_at):
        asked.append(sorted(created))
        return set()

    monkeypatch.setattr(desk_host_mirror, "COMPARE_S", 0.0)
    with intercepted(unknown_snapshots=unknown_snapshots):
        mirror.step()
        assert asked == [], "it was asked in the first round"
        host.kept["s1"] = KeptSnapshot(
            name="s1", label="", size_mb=1.0, pause_s=0.1, took_s=0.2, created_at=time.time()
        )
        mirror.step()
        mirror.step()
        assert asked == [["s1"]]
        monkeypatch.setattr(desk_host_mirror, "COMPARE_ALL_S", 0.0)
        mirror.step()
        assert asked == [["s1"], ["s1"]]
