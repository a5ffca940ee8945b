"""A parked trajectory shows its place and the waiting time, and both follow what the lender says."""

from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_group, make_trajectory
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import parking

REASON = "the quota of 16 sandboxes is used up"


def report_wait(row: Trajectory, position: int, wait_s: float) -> None:
    row.refresh_from_db()
    notice = parking.ParkingNotice(reason=REASON, position=position, wait_s=wait_s, retry_after_s=5.0)
    assert parking.park_trajectory(trajectory=row, notice=notice)


def test_list_and_viewer_follow_the_queue_until_a_desktop_is_there(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team, owner=people.operator)
    group = make_group(experiment=experiment)
    make_trajectory(group=group, member=0, turns=2, reward=1.0)
    row = make_trajectory(group=group, member=1, turns=0, reward=None, status="resetting")
    Trajectory.objects.filter(pk=row.pk).update(last_frame="")
    report_wait(row, 4, 95.0)

    overview, viewer = sign_in(people.viewer), sign_in(people.viewer)
    overview.goto("/trajectories/")
    cell = overview.locator(f"[data-stream='trajectory.{row.pk}']")
    expect(cell).to_contain_text("Parked")
    expect(cell).to_contain_text("Place 4 · about 1 min 35 s · waiting for")
    viewer.goto(f"/trajectories/{row.pk}/")
    screen = viewer.locator("[data-wait]")
    expect(screen).to_contain_text("No desktop is free where this trajectory runs")
    expect(screen).to_contain_text(REASON.capitalize())
    expect(viewer.locator("[data-figures]")).to_contain_text("Place 4")
    expect(viewer.locator(".lane-row.is-watched")).to_contain_text("Parked. Place 4")

    report_wait(row, 1, 12.0)
    expect(cell).to_contain_text("Place 1 · about 12 s")
    expect(screen).to_contain_text("About 12 s")
    expect(viewer.locator("[data-figures]")).to_contain_text("Place 1")

    assert parking.unpark_trajectory(trajectory=row)
    expect(cell).to_contain_text("Resetting")
    expect(screen).to_contain_text("The desktop is being reset")
    expect(viewer.locator("[data-figures]")).not_to_contain_text("Place")
