"""What is told of a desk host's report: everything first, then what differs, nothing when nothing does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from testing.fleet_rows import make_worker
from testing.workers.intercepted_reports import intercepted
from testing.workers.reported_host import ReportedHost
from webapp.fleet.models import BootFailure, Desktop, Host
from webapp.fleet.services import mirror_claims
from webapp.live.models import Event
from workers.desktops.host.messages import BootFailure as ReportedFailure
from workers.desktops.host.messages import Leak, Machine, Phase
from workers.fleet import report_teller
from workers.fleet.report_teller import ReportTeller

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> ReportedHost:
    reported = ReportedHost()
    reported.show("d1")
    reported.show("d2", phase=Phase.LEASED, lease_id="l", holder="env1@h1/t0", lease_left_s=20.0)
    return reported


@pytest.fixture
def teller(host: ReportedHost) -> ReportTeller:
    """Everything has been told."""
    make_worker("env1@h1")
    mirror_claims.claim_mirror(host="h1", by="env1@h1")
    found = ReportTeller("h1", "env1@h1")
    found.tell(host.watch(), has_changed=True)
    return found


@pytest.fixture
def figures_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_teller, "FIGURES_S", 0.0)


def row(name: str) -> Desktop:
    return Desktop.objects.get(name=name)


def num_events() -> int:
    return Event.objects.filter(stream="fleet", type="desktop.updated").count()


def statements(teller: ReportTeller, host: ReportedHost, *, has_changed: bool = False) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        teller.tell(host.watch(), has_changed=has_changed)
    return [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]


@pytest.mark.usefixtures("figures_now")
def test_a_quiet_round_asks_the_database_nothing(host: ReportedHost, teller: ReportTeller):
    assert statements(teller, host) == []
    host.version += 1  # something changed that shows on no page
    assert statements(teller, host, has_changed=True) == []


def test_only_desktops_that_changed_are_written_and_told_once(host: ReportedHost, teller: ReportTeller):
    before = num_events()
    Desktop.objects.filter(name="d2").update(holder="someone")
    host.show("d1", phase=Phase.LEASED, lease_id="l", holder="env1@h1/t1")
    teller.tell(host.watch(), has_changed=True)
    assert (row("d1").phase, row("d1").worker.name) == ("leased", "env1@h1")
    assert row("d2").holder == "someone", "it was not written"
    assert num_events() == before + 1
    assert statements(teller, host, has_changed=True) == []


def test_desktops_that_are_gone_and_new_ones_are_noticed_at_once(host: ReportedHost, teller: ReportTeller):
    before = num_events()
    host.end("d2")
    host.show("d3")
    teller.tell(host.watch(), has_changed=True)
    assert (row("d2").phase, row("d2").holder, row("d2").worker) == ("gone", "", None)
    assert row("d2").lease_until is None
    assert (row("d3").phase, row("d3").host, row("d3").memory_mb) == ("ready", "h1", 60.0)
    assert num_events() == before + 1
    host.show("d2")
    teller.tell(host.watch(), has_changed=True)
    assert row("d2").phase == "ready", "it has come back"


@pytest.mark.usefixtures("figures_now")
def test_figures_that_a_page_would_show_are_written_without_an_event(
    host: ReportedHost, teller: ReportTeller
):
    before = num_events()
    host.show("d1", cpu_percent=40.0, memory_mb=900.0, last_reset_s=0.3)
    host.show("d2", phase=Phase.LEASED, lease_id="l", holder="env1@h1/t0", lease_left_s=29.0)
    host.machine = Machine(cores=4, cpu_percent=70.0, load=3.0, memory_mb=8192, disk_mb=1e5, disk_free_mb=5e4)
    assert len(statements(teller, host)) == 2, "the host's row, and all desktops' in one"
    first = row("d1")
    assert (first.cpu_percent, first.memory_mb, first.last_reset_s) == (40.0, 900.0, 0.3)
    assert first.born_at is not None
    assert first.lease_until is None
    left = row("d2").lease_until - timezone.now()
    assert timedelta(seconds=25) < left <= timedelta(seconds=29)
    assert (Host.objects.get().cpu_percent, Host.objects.get().load) == (70.0, 3.0)
    assert num_events() == before
    host.show("d1", cpu_percent=40.4, memory_mb=900.2, last_reset_s=0.3)
    assert statements(teller, host) == [], "no page would show it"
    for step in (40.8, 41.2):  # small steps add up
        host.show("d1", cpu_percent=step, memory_mb=900.2, last_reset_s=0.3)
        teller.tell(host.watch(), has_changed=False)
    assert row("d1").cpu_percent == 41.2


def test_figures_wait_for_their_round(host: ReportedHost, teller: ReportTeller):
    host.show("d1", cpu_percent=40.0)
    assert statements(teller, host, has_changed=True) == []


def test_everything_is_told_again_now_and_then(
    host: ReportedHost, teller: ReportTeller, monkeypatch: pytest.MonkeyPatch, figures_now: None
):
    Desktop.objects.filter(name="d1").update(phase="dead")
    Desktop.objects.filter(name="d2").update(phase="gone")
    teller.tell(host.watch(), has_changed=False)
    assert row("d1").phase == "dead"
    monkeypatch.setattr(report_teller, "WHOLE_S", 0.0)
    teller.tell(host.watch(), has_changed=False)
    assert (row("d1").phase, row("d2").phase) == ("ready", "leased"), "whatever wrote it, it is mended"


def test_who_lost_the_mirror_writes_nothing_and_tells_everything_when_it_has_it_again(
    host: ReportedHost, teller: ReportTeller
):
    Host.objects.update(mirrored_by="env2@h1")
    Desktop.objects.filter(name="d2").update(phase="dead")
    host.show("d1", phase=Phase.RESETTING)
    teller.tell(host.watch(), has_changed=True)
    assert row("d1").phase == "ready", "it is the other one's to write"
    Host.objects.update(mirrored_by="env1@h1")
    teller.tell(host.watch(), has_changed=False)
    assert (row("d1").phase, row("d2").phase) == ("resetting", "leased")


def test_what_could_not_be_recorded_is_told_again(host: ReportedHost, teller: ReportTeller):
    def away(*_: Any) -> bool:
        raise DatabaseError("away")

    host.show("d1", phase=Phase.RESETTING)
    with intercepted(record_changes=away), pytest.raises(DatabaseError):
        teller.tell(host.watch(), has_changed=True)
    teller.tell(host.watch(), has_changed=False)
    assert row("d1").phase == "resetting"


@pytest.mark.usefixtures("figures_now")
def test_failed_boots_and_leaks_are_told_when_they_come(host: ReportedHost, teller: ReportTeller):
    host.failures = [
        ReportedFailure(number=1, at=timezone.now().timestamp(), desktop_id="d9", provider="x11", reason="no")
    ]
    teller.tell(host.watch(), has_changed=False)
    assert BootFailure.objects.get().desktop_name == "d9"
    host.leaks = [Leak(kind="folder", name="d9")]
    teller.tell(host.watch(), has_changed=False)
    assert [leak["name"] for leak in Host.objects.get().leaks] == ["d9"]
    assert Event.objects.filter(stream="fleet", type="host.updated").count() >= 1
    assert statements(teller, host) == []
