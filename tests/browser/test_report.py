"""A researcher freezes a report and shares it; a stranger with the link reads it and gets nowhere else."""

from playwright.sync_api import Browser, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_trajectory
from webapp.experiments.models import MetricPoint


def test_a_stranger_reads_the_shared_report(
    sign_in: SignIn, people: People, browser: Browser, web_server: str
):
    experiment = make_experiment(team=people.team, status="finished", name="Frozen run")
    for step in (1, 2, 3):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=step / 4)
    trajectory = make_trajectory(team=people.team, turns=2)
    page = sign_in(people.operator)
    page.goto(f"/reports/new/?id={experiment.pk}")
    page.get_by_label("Title").fill("What we found")
    page.get_by_label("Text, in Markdown").fill("It **works**.\n\n<script>alert(1)</script>")
    page.get_by_label("Trajectories, up to").fill(str(trajectory.pk))
    page.get_by_role("button", name="Freeze").click()
    expect(page.locator(".chart .main-svg").first).to_be_attached()
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Make a link").click()
    address = page.get_by_label("Address of link").input_value()

    context = browser.new_context(base_url=web_server)
    stranger = context.new_page()
    stranger.goto(address)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("What we found")
    expect(stranger.get_by_text("<script>alert(1)</script>")).to_be_visible()
    expect(stranger.locator(".chart .main-svg").first).to_be_attached()
    picture = stranger.locator(".report-turns img").first
    picture.scroll_into_view_if_needed()
    stranger.wait_for_function("() => document.querySelector('.report-turns img').naturalWidth > 0")
    with stranger.expect_download() as saved:
        stranger.get_by_label("Success and reward as SVG").click()
    assert "<svg" in saved.value.path().read_text()
    assert stranger.goto("/reports/").url.endswith("/login/?next=/reports/")

    page.get_by_role("button", name="Revoke").click()
    page.locator("#confirm").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()
    stranger.goto(address)
    expect(stranger.get_by_text("No report here")).to_be_visible()
    context.close()
