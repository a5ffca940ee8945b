"""What a desk host tells becomes rows: one mirror per host, changes published once, nothing kept for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from testing.factories import make_trajectory, make_user
from testing.fleet_rows import make_desktop, make_host, make_worker
from testing.replay_lines import picture
from webapp.fleet.models import BootFailure, Desktop, DesktopPhase, Host, HostSample, Verb, Worker
from webapp.fleet.services import desk_hosts, history, mirror_claims, operations
from webapp.fleet.services.desktops import record_desktop
from webapp.fleet.services.workers import beat_again
from webapp.live.models import Event
from webapp.trajectories.queries import desktop_demand
from webapp.worker_door import workers as door

pytestmark = pytest.mark.django_db
X11 = [{"provider": "x11", "usable": True, "mode": "", "reasons": [], "remedies": []}]


def desktop_state(name: str = "d1", **values: Any) -> desk_hosts.DesktopState:
    usual: dict[str, Any] = {
        "name": name, "provider": "x11", "phase": "leased", "boot_phase": "", "generation": 1, "width": 512,
        "height": 384, "holder": "env1@h1/t0", "num_resets": 0, "num_rebuilds": 0, "num_failures": 0,
        "reason": "", "quarantine": "", "log": "", "has_vnc": True, "figures": desktop_figures(),
    }  # fmt: skip
    return desk_hosts.DesktopState(**usual | values)


def desktop_figures(**values: Any) -> desk_hosts.DesktopFigures:
    usual: dict[str, Any] = {
        "last_reset_s": 0.04, "lease_until": None, "cpu_percent": 3.0, "memory_mb": 60.0, "num_processes": 13,
        "born_at": timezone.now(),
    }  # fmt: skip
    return desk_hosts.DesktopFigures(**usual | values)


def host_state(*desktops: desk_hosts.DesktopState, failures: Any = (), **values: Any) -> desk_hosts.HostState:
    columns = {"providers": X11, "pool": [], "leaks": [], "max_desktops": 8} | values
    return desk_hosts.HostState(values=columns, desktops=desktops, failures=failures)


def events() -> list[str]:
    return list(Event.objects.filter(stream="fleet").order_by("seq").values_list("type", flat=True))


def test_one_worker_mirrors_a_host_until_it_falls_silent():
    assert mirror_claims.claim_mirror(host="h1", by="env1")
    assert not mirror_claims.claim_mirror(host="h1", by="env2")
    assert mirror_claims.claim_mirror(host="h1", by="env1"), "it renews its right"
    assert mirror_claims.claim_mirror(host="h2", by="env2"), "another host is another right"
    Host.objects.filter(name="h1").update(mirrored_at=timezone.now() - timedelta(seconds=20))
    assert mirror_claims.claim_mirror(host="h1", by="env2")
    assert not mirror_claims.claim_mirror(host="h1", by="env1")
    mirror_claims.hand_over_mirror(host="h1", by="env2")
    assert mirror_claims.claim_mirror(host="h1", by="env1"), "who stops hands over at once"


def test_a_renewed_claim_fails_once_another_worker_mirrors_the_host():
    assert mirror_claims.claim_mirror(host="h1", by="env1")
    assert mirror_claims.claim_mirror(host="h1", by="env1", again=True)
    Host.objects.update(mirrored_by="env2")
    assert not mirror_claims.claim_mirror(host="h1", by="env1", again=True)
    Host.objects.update(mirrored_at=timezone.now() - timedelta(seconds=20))
    assert mirror_claims.claim_mirror(host="h1", by="env1", again=True)
    assert Host.objects.get().mirrored_by == "env1"


def test_a_claim_says_what_the_mirror_has_to_know():
    def claim() -> mirror_claims.HostNow | None:
        queued = desktop_demand.queued_sql()
        return mirror_claims.claim_mirror(host="h1", by="env1@h1", again=True, queued=queued)

    make_host("h1")
    nothing = mirror_claims.HostNow(
        is_draining=False, num_slots=0, has_operations=False, are_desktops_wanted=False
    )
    assert claim() == nothing
    for name, slots in (("env1@h1", 3), ("env2@h1", 4)):
        make_worker(name, slots=slots)
    drained = make_worker("env3@h1", slots=9)
    make_worker("env1@h2", host="h2", slots=50)
    Worker.objects.filter(pk=drained.pk).update(is_draining=True)
    Host.objects.update(is_draining=True)
    user = make_user()
    for host in ("h2", "h1"):
        desktop = make_desktop(f"d-{host}", host=host)
        assert claim() == replace(nothing, is_draining=True, num_slots=7)
        operations.request_operation(desktop=desktop, verb=Verb.KILL, user=user)
    make_trajectory(status="running")
    assert claim() == replace(nothing, is_draining=True, num_slots=7, has_operations=True)
    operations.take_operations(host="h1")
    make_trajectory(status="queued")
    assert claim() == replace(nothing, is_draining=True, num_slots=7, are_desktops_wanted=True)


def test_a_heartbeat_of_a_worker_that_is_online_is_one_statement_and_tells_of_the_drain(
    django_assert_num_queries,
):
    heartbeat: dict[str, Any] = {"name": "env1@h1", "queue": "env", "host": "h1", "pid": 1, "version": "1"}
    assert beat_again(**heartbeat, slots=4) is None, "it has to come first"
    assert not door.beat_worker(**heartbeat, slots=4, clock_s=0)
    Worker.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=9))
    with django_assert_num_queries(1):
        assert door.beat_worker(**heartbeat, slots=5, clock_s=0) is False
    worker = Worker.objects.get()
    assert worker.slots == 5
    assert worker.heartbeat_at > timezone.now() - timedelta(seconds=5)
    Worker.objects.update(is_draining=True)
    assert door.beat_worker(**heartbeat, slots=5, clock_s=0) is True
    Worker.objects.update(status="lost")
    assert door.beat_worker(**heartbeat, slots=5, clock_s=0) is True
    assert Worker.objects.get().status == "online"
    assert events() == ["worker.joined"] * 2


def test_a_goodbye_that_comes_late_stops_no_later_process_of_its_name():
    heartbeat: dict[str, Any] = {"name": "env1@h1", "queue": "env", "host": "h1", "version": "1", "slots": 4}
    for pid in (1, 2):
        door.beat_worker(**heartbeat, pid=pid, clock_s=0)
    for pid, status in ((1, "online"), (2, "stopped")):
        door.stop_worker("env1@h1", pid)
        assert Worker.objects.get().status == status


def test_figures_of_another_hosts_desktop_are_not_written():
    make_host("h1", mirrored_by="env1")
    make_desktop("d2", host="h2", cpu_percent=7.0)
    changes = desk_hosts.HostChanges(
        values={}, desktops=[], figures={"d2": desktop_figures(cpu_percent=99.0)}, gone=["d2"]
    )
    assert desk_hosts.record_changes(host="h1", by="env1", changes=changes)
    row = Desktop.objects.get()
    assert (row.cpu_percent, row.phase) == (7.0, "leased")


def test_a_report_becomes_rows_with_owner_and_figures():
    make_host("h1", problem="it was away")
    worker = make_worker("env1@h1")
    desk_hosts.record_host(
        host="h1", state=host_state(desktop_state(), leaks=[{"kind": "folder"}], num_resets=5)
    )
    host = Host.objects.get()
    assert (host.problem, host.num_resets, len(host.leaks)) == ("", 5, 1)
    desktop = Desktop.objects.get()
    assert (desktop.name, desktop.worker, desktop.memory_mb) == ("d1", worker, 60.0)
    assert desktop.mirrored_at is not None


def test_only_what_people_see_is_published_and_once_per_report():
    make_host("h1")
    first, second = desktop_state("d1"), desktop_state("d2")
    desk_hosts.record_host(host="h1", state=host_state(first, second))
    assert events() == ["desktop.updated"]
    desk_hosts.record_host(
        host="h1", state=host_state(desktop_state("d1", figures=desktop_figures(cpu_percent=99.0)), second)
    )
    assert events() == ["desktop.updated"], "figures change all the time"
    assert Desktop.objects.get(name="d1").cpu_percent == 99.0
    moved = [desktop_state("d1", phase="resetting"), desktop_state("d2", phase="ready", holder="")]
    desk_hosts.record_host(host="h1", state=host_state(*moved))
    assert events() == ["desktop.updated"] * 2


def test_a_desktop_that_is_told_of_no_more_is_gone_but_not_one_of_a_remote_service():
    make_host("h1")
    remote = record_desktop(
        name="vm-7", phase=DesktopPhase.LEASED, host="h1", provider="remote", width=512, height=384
    )
    desk_hosts.record_host(host="h1", state=host_state(desktop_state()))
    desk_hosts.record_host(host="h1", state=host_state())
    assert Desktop.objects.get(name="d1").phase == "gone"
    assert Desktop.objects.get(name="d1").holder == ""
    remote.refresh_from_db()
    assert remote.phase == "leased"


def test_a_trajectory_may_name_a_desktop_before_its_host_does_and_changes_nothing_after():
    make_host("h1")
    worker = make_worker("env1@h1")
    values = {"host": "h1", "provider": "x11", "width": 512, "height": 384, "worker": worker}
    named = record_desktop(name="d1", phase=DesktopPhase.LEASED, **values)
    desk_hosts.record_host(host="h1", state=host_state(desktop_state(phase="resetting")))
    assert record_desktop(name="d1", phase=DesktopPhase.READY, **values).pk == named.pk
    assert Desktop.objects.get().phase == "resetting", "only the mirror changes what a desk host owns"


def test_a_desk_host_that_does_not_answer_is_told_once():
    make_host("h1")
    for _ in range(3):
        desk_hosts.record_problem(host="h1", problem="no answer")
    assert Host.objects.get().problem == "no answer"
    assert events() == ["host.updated"]


def test_boot_failures_are_kept_once_with_their_picture():
    host = make_host("h1")
    drawn = picture(7)
    failed = desk_hosts.FailedBoot(
        number=1, at=timezone.now(), desktop_name="d9", provider="qemu", boot_phase="booting",
        reason="no kernel", log="panic", screenshot=drawn,
    )  # fmt: skip
    for _ in range(2):
        desk_hosts.record_host(host="h1", state=host_state(failures=[failed]))
    kept = BootFailure.objects.get()
    assert (kept.host, kept.boot_phase) == (host, "booting")
    with default_storage.open(kept.screenshot) as file:
        assert file.read() == drawn
    BootFailure.objects.update(at=timezone.now() - timedelta(days=30))
    desk_hosts.forget_old()
    assert not default_storage.exists(kept.screenshot)
    assert not BootFailure.objects.exists()


def test_samples_count_phases_and_old_history_is_forgotten():
    make_host("h1", reset_p99_s=0.3)
    for name, phase in (
        ("a", "ready"),
        ("b", "leased"),
        ("c", "starting"),
        ("d", "resetting"),
        ("e", "gone"),
    ):
        make_desktop(name, phase=phase)
    history.sample_host(host="h1")
    sample = HostSample.objects.filter(width_s=10).get()
    assert (sample.ready, sample.leased, sample.booting, sample.reset_p99_s) == (1, 1, 2, 0.3)
    HostSample.objects.update(bucket=0)
    used = make_desktop("used", phase="gone")
    make_trajectory(desktop=used)
    Desktop.objects.filter(phase="gone").update(updated_at=timezone.now() - timedelta(days=30))
    desk_hosts.forget_old()
    assert not HostSample.objects.exists()
    gone = Desktop.objects.filter(phase="gone")
    assert [desktop.name for desktop in gone] == ["used"], "what a trajectory names stays"
