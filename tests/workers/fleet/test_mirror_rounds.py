"""Rounds of the mirror with a desk host that says what a test sets: what each asks, does and tells."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from testing.factories import make_trajectory, make_user
from testing.fleet_rows import make_worker
from testing.workers.reported_host import ReportedHost
from webapp.fleet import mirror_claim
from webapp.fleet.models import Desktop, Host, Operation, Verb
from webapp.fleet.operator_requests import ask_for_desktop, drain_host
from webapp.trajectories.models import Trajectory
from workers.desktops.host.messages import KeptSnapshot, Phase
from workers.fleet import desk_host_mirror, reporting
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
    ask_for_desktop(desktop=Desktop.objects.get(), verb=Verb.KILL, user=make_user())
    mirror.step()
    assert Operation.objects.get().status == "done"
    assert host.waits_s[-1] == 0.0
    mirror.step()
    assert Desktop.objects.get().phase == "gone"
    assert host.waits_s[-1] == desk_host_mirror.WATCH_S


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
    assert mirror_claim.claim_mirror(host="h1", by="env2@h1")
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

    def unknown_snapshots(kept, _asked_at):
        asked.append(sorted(snapshot.name for snapshot in kept))
        return set()

    monkeypatch.setattr(reporting, "unknown_snapshots", unknown_snapshots)
    monkeypatch.setattr(desk_host_mirror, "COMPARE_S", 0.0)
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
