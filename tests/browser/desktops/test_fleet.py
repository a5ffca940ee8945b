"""The fleet page in a browser: an operator quarantines a desktop and sees it happen; a viewer cannot."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_trajectory, make_user
from testing.fleet_rows import make_desktop, make_host, make_joined_host, make_sample, make_worker
from tests.webapp.fleet.test_mirror import desktop_state, host_state
from webapp.accounts.models import Role
from webapp.fleet.models import JoinToken, Operation, OperationStatus
from webapp.fleet.services import desk_hosts, operations
from webapp.trajectories.models import Trajectory


@pytest.fixture
def running(people: People) -> Trajectory:
    """A trajectory on desktop d1 of host h1, and an idle desktop d2."""
    make_host("h1")
    worker = make_worker("env1@h1")
    desktop = make_desktop("d1", worker=worker)
    make_desktop("d2", phase="ready")
    return make_trajectory(team=people.team, desktop=desktop, worker=worker, status="running", turns=2)


def tile(page: Page, name: str):
    return page.locator(f'[data-desktop="{name}"]')


def test_an_operator_quarantines_a_desktop_and_sees_what_became_of_it(
    sign_in: SignIn, people: People, running: Trajectory
):
    page = sign_in(people.operator)
    page.goto("/fleet/?view=table")
    expect(page.locator("[data-live-pill]").first).to_contain_text("Live")
    tile(page, "d1").get_by_label("Operate d1").click()
    tile(page, "d1").get_by_role("button", name="Quarantine…").click()
    dialog = page.locator("#operate")
    expect(dialog).to_contain_text("Quarantine d1?")
    dialog.get_by_role("button", name="Quarantine").click()
    expect(dialog, "a reason is required").to_be_visible()
    dialog.get_by_label("Reason").fill("the panel froze twice")
    dialog.get_by_role("button", name="Quarantine").click()
    expect(page).to_have_url(f"{page.url.split('/fleet')[0]}/fleet/?view=table")
    expect(page.get_by_text("Quarantine d1: asked h1.")).to_be_visible()
    expect(page.locator(".operations")).to_contain_text("Waiting for its host")

    carry_out()
    expect(tile(page, "d1")).to_contain_text("the panel froze twice")
    expect(tile(page, "d1").locator("[data-status=quarantined]")).to_be_visible()
    expect(page.locator(".operations")).to_contain_text("kept as it is")
    expect(page.locator(".operations")).to_contain_text(people.operator.username)
    page.get_by_label("Phase").select_option("quarantined")
    expect(tile(page, "d2")).to_have_count(0)
    expect(tile(page, "d1")).to_be_visible()
    page.get_by_role("link", name="d1", exact=True).click()
    expect(page.get_by_text("In quarantine:")).to_be_visible()


def carry_out() -> None:
    """What the mirror of host h1 does with what is asked."""
    (asked,) = operations.take_operations(host="h1")
    operations.end_operation(operation=asked, status=OperationStatus.DONE, outcome="kept as it is")
    kept = desktop_state("d1", phase="quarantined", holder="", quarantine=asked.reason)
    desk_hosts.record_host(host="h1", state=host_state(kept, desktop_state("d2", phase="ready", holder="")))


def test_a_viewer_sees_everything_and_has_no_buttons(sign_in: SignIn, people: People, running: Trajectory):
    page = sign_in(people.viewer)
    for path in ("/fleet/", "/fleet/?view=table", "/fleet/desktops/d1/"):
        page.goto(path)
        expect(page.get_by_text("d1", exact=True).first).to_be_visible()
        expect(page.locator("[data-operate]")).to_have_count(0)
        expect(page.get_by_role("button", name="Drain")).to_have_count(0)
    assert not Operation.objects.exists()


def test_the_wall_follows_desktops_workers_and_leaks(sign_in: SignIn, people: People, running: Trajectory):
    page = sign_in(people.operator)
    page.goto("/fleet/")
    expect(page.locator("[data-live-pill]").first).to_contain_text("Live")
    expect(tile(page, "d1").locator("img")).to_have_attribute(
        "src", f"/frames/{running.last_frame}.thumb.jpg"
    )
    expect(page.locator("[data-leaks]")).to_have_attribute("data-leaks", "0")
    leak = {"kind": "process", "name": "d9-1:77", "detail": "qemu, pid 77"}
    desk_hosts.record_host(host="h1", state=host_state(desktop_state("d3"), leaks=[leak]))
    expect(tile(page, "d3")).to_be_visible()
    expect(tile(page, "d1")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("qemu, pid 77")

    page.locator('[data-worker="env1@h1"]').get_by_role("button", name="Drain").click()
    page.locator("#confirm").get_by_role("button", name="Drain").click()
    expect(page.locator('[data-worker="env1@h1"]')).to_contain_text("Drain")
    expect(page.locator('[data-worker="env1@h1"] [data-status="draining"]')).to_be_visible()


def test_history_is_drawn(sign_in: SignIn, people: People, running: Trajectory):
    host = make_host("h2")
    for ready in range(3):
        at = timezone.now() - timedelta(seconds=60 * ready)
        make_sample(host, at, ready=ready, leased=2, booting=1, reset_p50_s=0.04, reset_p99_s=0.2)
    page = sign_in(people.viewer)
    page.goto("/fleet/")
    page.locator("#history").scroll_into_view_if_needed()
    expect(page.locator("#chart-desktops .plot-container")).to_be_visible()
    expect(page.locator("#chart-reset-time .plot-container")).to_be_visible()
    page.wait_for_function("() => document.getElementById('chart-desktops')?.data?.[0].x.length === 3")


def test_an_admin_gets_the_command_with_which_a_host_joins(sign_in: SignIn, people: People):
    host = make_joined_host("desk7.lab")
    page = sign_in(make_user(Role.ADMIN, team=people.team))
    page.goto("/fleet/")
    expect(page.locator(f"#host-{host.host_id}")).to_contain_text("Joined over HTTPS")
    page.get_by_role("link", name="Add a host").click()
    page.get_by_label("GPUs: trainers and policy servers").check()
    page.get_by_role("button", name="Make the command").click()
    expect(page.locator("pre")).to_have_count(2)
    command, token = page.locator("pre").all()
    expect(command).to_have_text("make join SERVER=https://deskhand.test:8743 ROLES=env,gpu")
    expect(token).to_have_text(re.compile("^[0-9a-f]{48}"))
    assert JoinToken.objects.get(used_at=None).roles == ["env", "gpu"]
    page.goto("/fleet/")
    page.locator(f"#host-{host.host_id}").get_by_role("button", name="Revoke").click()
    page.locator("#confirm").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("desk7.lab is revoked")).to_be_visible()
    host.refresh_from_db()
    assert host.revoked_at
