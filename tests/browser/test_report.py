"""A researcher freezes a report and shares it; a stranger with the link reads it and gets nowhere else."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Browser, expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_task, make_task_set, make_trajectory
from training.contracts.config import ExperimentConfig
from webapp.experiments.models import MetricPoint
from webapp.reports.frozen_content import Choices
from webapp.reports.models import ReportLink
from webapp.reports.services import links
from webapp.reports.services.reports import write_version


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
    page.emulate_media(media="print")
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    expect(page.locator(".sidebar, .page-actions, .exports").filter(visible=True)).to_have_count(0)
    page.emulate_media(media="screen")
    assert stranger.goto("/reports/").url.endswith("/login/?next=/reports/")

    page.get_by_role("button", name="Revoke").click()
    page.locator("#confirm").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()
    stranger.goto(address)
    expect(stranger.get_by_text("No report here")).to_be_visible()
    context.close()


def test_a_report_of_two_runs_tells_its_lines_apart_and_is_printed_whole(sign_in: SignIn, people: People):
    runs = [make_experiment(team=people.team, status="finished") for _ in range(2)]
    shared = make_task_set(ExperimentConfig().tasks.task_set)
    tasks = [make_task(task_set=shared) for _ in range(30)]
    names = [f"reward/{name}" for name in ("score", "parsable", "refused", "turns")]
    for run in runs:
        make_evaluation(run, tasks={task.task_id: (1, 1) for task in tasks})
        points = [
            MetricPoint(experiment=run, name=name, step=step, value=step) for name in names for step in (1, 2)
        ]
        MetricPoint.objects.bulk_create(points)
    choices = Choices([run.pk for run in runs], charts=["Reward terms"], with_tasks=True)
    version = write_version(team=people.team, user=people.operator, title="Two", text="", choices=choices)
    page = sign_in(people.operator)
    page.goto(f"/reports/{version.report_id}/v/1/")
    expect(page.locator(".legendtext")).to_have_count(2 * len(names))
    lines = page.locator(".js-plotly-plot").evaluate(
        "(plot) => plot.data.map(({ line }) => `${line.color} ${line.dash}`)"
    )
    assert len(set(lines)) == 2 * len(names)
    hidden = page.locator(".legendtext").evaluate_all(
        """(texts) => {
            const inner = document.querySelector(".legend .bg").getBoundingClientRect();
            return texts.filter((text) => text.getBoundingClientRect().bottom > inner.bottom + 1).length;
        }"""
    )
    assert hidden == 0, "names below the end of the legend"

    page.emulate_media(media="print")
    cut = page.locator(".report-table").evaluate_all(
        "(tables) => tables.filter((one) => one.scrollHeight > one.clientHeight + 1).length"
    )
    assert cut == 0
    expect(page.get_by_text(tasks[-1].task_id)).to_be_visible()


def test_a_stranger_with_an_expired_link_is_told_so_and_sees_nothing_else(
    people: People, browser: Browser, web_server: str
):
    experiment = make_experiment(team=people.team, status="finished", name="Frozen run")
    trajectory = make_trajectory(team=people.team, turns=1)
    choices = Choices([experiment.pk], trajectories=[trajectory.pk])
    version = write_version(
        team=people.team, user=people.operator, title="What we found", text="It works.", choices=choices
    )
    link = links.make_link(version=version, user=people.operator, days=1)
    address = f"/r/{links.token_of(link)}/"
    context = browser.new_context(base_url=web_server)
    stranger = context.new_page()
    stranger.goto(address)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("What we found")
    picture = stranger.locator(".report-turns img").first.get_attribute("src")
    assert picture is not None
    assert context.request.get(picture).status == 200

    ReportLink.objects.filter(pk=link.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = stranger.goto(address)
    assert answer is not None
    assert answer.status == 404
    expect(stranger.get_by_role("heading")).to_have_text("No report here")
    expect(stranger.get_by_role("main")).to_contain_text("has expired")
    expect(stranger.get_by_role("link")).to_have_text(["Skip to the content"])
    expect(stranger.locator("img, form, nav, table, .chart")).to_have_count(0)
    expect(stranger.get_by_role("button")).to_have_count(0)
    words = stranger.locator("body").inner_text()
    for shown_before in ("What we found", "It works.", "Frozen run"):
        assert shown_before not in words
    assert context.request.get(picture).status == 404
    context.close()
