"""The fleet page and one desktop's page: what they show to whom, filters, few queries."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from testing.factories import make_frame, make_trajectory, make_user
from testing.fleet_rows import make_desktop, make_host, make_worker
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.fleet.models import BootFailure, Desktop, Operation
from webapp.fleet.services.operations import drain_worker

pytestmark = pytest.mark.django_db
MAX_QUERIES = 11
"""Session, person and whether the audit log knows of this look included."""


def page_of(client: Client, path: str = "/fleet/") -> str:
    response = client.get(path)
    assert response.status_code == 200
    return page_text(response)


def test_an_empty_fleet_says_what_would_fill_it(client: Client, viewer):
    page = page_of(client)
    assert "No desktop" in page
    assert "No worker has reported yet" in page
    assert "No host has reported yet" in page


def test_a_full_page_needs_few_queries(client: Client, operator, team, django_assert_max_num_queries):
    for number in range(3):
        host = make_host(f"host-{number}")
        worker = make_worker(f"env1@host-{number}", host=host.name)
        for place in range(6):
            desktop = make_desktop(f"d{number}{place}", host=host.name, worker=worker)
            make_trajectory(team=team, desktop=desktop, worker=worker, status="running")
        BootFailure.objects.create(
            host=host, number=1, at=timezone.now(), desktop_name="d9", provider="qemu", reason="no disk"
        )
    page_of(client)
    for path in (
        "/fleet/",
        "/fleet/?view=table&sort=cpu&phase=leased",
        "/fleet/parts/",
        "/fleet/desktops/d00/",
    ):
        with django_assert_max_num_queries(MAX_QUERIES):
            page_of(client, path)


def test_a_thousand_desktops_come_in_pages_of_the_same_queries_and_size(
    client: Client, operator, team, django_assert_max_num_queries
):
    workers = [
        make_worker(f"env1@host-{number}", host=make_host(f"host-{number}").name) for number in range(4)
    ]
    sizes = []
    for number in (60, 1000):
        known = Desktop.objects.count()
        Desktop.objects.bulk_create(
            Desktop(
                name=f"desk-{place:04}",
                host=f"host-{place % 4}",
                provider="x11",
                phase="leased" if place % 2 else "ready",
                holder="env1" if place % 2 else "",
                width=512,
                height=384,
                worker=workers[place % 4],
                mirrored_at=timezone.now(),
            )
            for place in range(known, number)
        )
        for desktop in Desktop.objects.order_by("name")[:48:12]:
            make_trajectory(team=team, desktop=desktop, worker=desktop.worker, status="running")
        for view in ("wall", "table"):
            with django_assert_max_num_queries(MAX_QUERIES):
                response = client.get(f"/fleet/?view={view}")
            sizes.append(len(response.content))
    assert max(sizes) <= 200 * 1024
    page = page_text(response)
    assert "Page 1, 1,000 desktops" in page
    assert page.count("data-desktop=") == 48
    last = page_of(client, "/fleet/?page=21")
    assert (last.count("data-desktop="), "desk-0999" in last) == (40, True)
    assert "desk-0000" in page_of(client, "/fleet/?page=22"), "there is no such page"
    assert "500 of 1000 fit the filter" in page_of(client, "/fleet/?phase=leased&page=2")
    assert client.get("/fleet/?page=0").status_code == 400


def test_hosts_are_shown_with_resources_providers_and_remedies(client: Client, viewer):
    note = {"reasons": ["Xvnc is not installed"], "remedies": ["apt-get install tigervnc"]}
    make_host("h1", providers=[{"provider": "x11", "usable": True, "mode": "sandbox", **note}])
    make_host("h2", problem="the desk host does not answer")
    page = page_of(client)
    assert "apt-get install tigervnc" in page
    assert "the desk host does not answer" in page
    assert page.count('data-status="lost"') == 1


def test_a_host_nobody_tells_of_any_more_is_shown_as_lost(client: Client, viewer):
    make_host("silent", heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert 'data-status="lost"' in page_of(client)


def test_leaks_raise_an_alarm_and_none_does_not(client: Client, viewer):
    host = make_host("h1")
    assert 'data-leaks="0"' in page_of(client)
    of_every_page = page_of(client).count('role="alert"')
    host.leaks = [{"kind": "process", "name": "d1-1:77", "detail": "qemu, pid 77"}]
    host.save()
    page = page_of(client)
    assert 'data-leaks="1"' in page
    assert "qemu, pid 77" in page
    assert page.count('role="alert"') == of_every_page + 1


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["a", "b", "c"]),
        ("phase=ready", ["b"]),
        ("phase=quarantined", ["c"]),
        ("phase=failed", ["a"]),
        ("host=h2", ["b"]),
        ("provider=qemu", ["c"]),
        ("q=froze", ["c"]),
        ("q=ENV1", ["a"]),
        ("sort=memory", ["c", "a", "b"]),
        ("sort=nonsense", ["a", "b", "c"]),
        ("q=nothing-like-it", []),
    ],
)
@pytest.mark.parametrize("view", ["wall", "table"])
def test_the_url_holds_filter_sorting_and_view(
    client: Client, viewer, query: str, shown: list[str], view: str
):
    make_desktop("desk-a", host="h1", holder="env1@h1/t0", num_failures=2, memory_mb=50)
    make_desktop("desk-b", host="h2", phase="ready", memory_mb=10)
    make_desktop("desk-c", provider="qemu", phase="quarantined", quarantine="it froze", memory_mb=90)
    page = page_of(client, f"/fleet/?view={view}&{query}")
    places = {name: page.find(f'data-desktop="desk-{name}"') for name in "abc"}
    assert sorted((n for n in "abc" if places[n] >= 0), key=lambda n: places[n]) == shown
    if not shown:
        assert "No desktop fits the filter" in page


def test_another_teams_work_is_named_but_not_shown(client: Client, viewer):
    foreign = make_trajectory(desktop=make_desktop("theirs"), status="running")
    for path in ("/fleet/", "/fleet/?view=table", "/fleet/desktops/theirs/"):
        page = page_of(client, path)
        assert foreign.task.instruction not in page
        assert foreign.last_frame not in page or not foreign.last_frame
        assert "Another team" in page


def test_the_live_screen_is_linked_while_a_trajectory_of_ours_runs(client: Client, viewer, team):
    desktop = make_desktop("d1", has_vnc=True)
    running = make_trajectory(team=team, desktop=desktop, status="running")
    link = f'href="/trajectories/{running.pk}/desktop/"'
    assert link in page_of(client)
    assert link in page_of(client, "/fleet/desktops/d1/")
    running.ended_at = timezone.now()
    running.save()
    assert link not in page_of(client)


def test_a_desktops_page_tells_why_it_is_how_it_is(client: Client, viewer, team):
    desktop = make_desktop(
        "d1", phase="dead", reason="it ended with code -9", log="Xvnc: killed", holder="", num_rebuilds=3
    )
    make_trajectory(team=team, desktop=desktop, last_frame=make_frame(team, 1))
    page = page_of(client, "/fleet/desktops/d1/")
    assert "it ended with code -9" in page
    assert "Xvnc: killed" in page
    assert client.get("/fleet/desktops/unknown/").status_code == 404


def test_only_operators_see_buttons(client: Client, team):
    make_worker("env1@h1")
    make_host("h1")
    make_desktop("d1")
    for role, may in (
        (Role.VIEWER, False),
        (Role.ANNOTATOR, False),
        (Role.OPERATOR, True),
        (Role.ADMIN, True),
    ):
        client.force_login(make_user(role, team=team))
        for path in ("/fleet/", "/fleet/?view=table", "/fleet/desktops/d1/"):
            assert ("data-operate" in page_of(client, path)) is may, (role, path)
        assert ("/drain/" in page_of(client)) is may


def test_draining_and_drained_are_told_apart(client: Client, operator, team):
    worker = make_worker("env1@h1")
    running = make_trajectory(team=team, worker=worker, status="running")
    drain_worker(worker=worker, on=True, user=operator)
    assert 'data-status="draining"' in page_of(client)
    running.ended_at = timezone.now()
    running.save()
    assert 'data-status="drained"' in page_of(client)


def test_a_boot_failure_is_shown_with_phase_log_and_picture(client: Client, viewer, team):
    path = default_storage.save("fleet/test", ContentFile(b"\x89PNG\r\n\x1a\n and so on"))
    failure = BootFailure.objects.create(
        host=make_host("h1"),
        number=1,
        at=timezone.now(),
        desktop_name="d7",
        provider="qemu",
        boot_phase="agent_up",
        reason="the agent did not answer after 60 s",
        log="[ 12.3] panic",
        screenshot=path,
    )
    page = page_of(client)
    assert "qemu · agent_up" in page
    assert "[ 12.3] panic" in page
    picture = client.get(f"/fleet/failures/{failure.pk}/screen/")
    assert picture["Content-Type"] == "image/png"
    default_storage.delete(path)
    assert client.get(f"/fleet/failures/{failure.pk}/screen/").status_code == 404


def test_operations_are_listed_with_who_and_what_happened(client: Client, viewer):
    Operation.objects.create(
        verb="kill", kind="desktop", target="d1", host="h1", status="failed", outcome="it is gone",
        asked_by_name="ann",
    )  # fmt: skip
    page = page_of(client)
    assert "ann" in page
    assert "it is gone" in page


def test_a_desktop_that_a_worker_keeps_warm_is_not_in_use(client: Client, viewer, team):
    """One runs a trajectory, two are leased by the worker after theirs ended, one is lent elsewhere."""
    worker = make_worker()
    make_host()
    busy, warm, fresh = (make_desktop(name, worker=worker) for name in ("busy", "warm", "fresh"))
    make_desktop("lent", holder="a trainer elsewhere")
    make_trajectory(team=team, status="running", desktop=busy)
    make_trajectory(team=team, desktop=warm)
    page = page_of(client)
    assert "2 in use" in page
    assert "2 kept warm" in page
    tiles = re.findall(r'data-desktop="(\w+)".*?<span class="tile-action">(.*?)</span>', page, re.S)
    assert dict(tiles) == {
        "busy": "Running",
        "warm": "Kept warm",
        "fresh": "Kept warm",
        "lent": "Leased",
    }
