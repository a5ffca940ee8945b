"""Small things that pages promise: questions before what cannot be undone, keys, orders, names."""

import re

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import (
    make_attempt,
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_trajectory,
    make_user,
)
from webapp.accounts.models import Membership, Role
from webapp.experiments.models import MetricPoint


@pytest.mark.parametrize("modules", ["loaded", "late"])
def test_removing_a_member_asks_first(sign_in: SignIn, people: People, modules: str):
    admin = make_user(Role.ADMIN, team=people.team)
    page = sign_in(admin)
    if modules == "late":
        page.route("**/js/app*.js", lambda route: route.abort())
    page.goto("/team/")
    row = page.locator("tr", has_text=people.viewer.username)
    row.get_by_role("button", name="Remove").click()
    dialog = page.locator("#confirm")
    expect(dialog).to_contain_text(f"Remove {people.viewer.username} from {people.team}?")
    assert Membership.objects.filter(user=people.viewer).exists()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator("tr", has_text=people.viewer.username)).to_have_count(0)


def test_without_its_modules_a_page_still_filters_and_offers_to_reload(sign_in: SignIn, people: People):
    make_experiment(team=people.team, name="Sheets")
    page = sign_in(people.viewer)
    page.route("**/js/lib/live_events*.js", lambda route: route.abort())  # all of app.js needs it
    page.goto("/experiments/")
    page.get_by_label("Status", exact=True).select_option("failed")
    expect(page).to_have_url(re.compile(r"/experiments/\?status=failed$"))
    expect(page.get_by_role("link", name="Sheets")).to_have_count(0)
    notice = page.get_by_role("alert").filter(has_text="Part of this page did not load")
    expect(notice).to_be_visible()
    page.unroute_all()
    with page.expect_navigation():
        notice.get_by_role("link", name="Reload it").click()
    expect(page).to_have_url(re.compile(r"/experiments/\?status=failed$"))
    expect(notice).to_be_hidden()


def test_slash_searches_trajectories_and_the_replay_buffer(sign_in: SignIn, people: People):
    wanted, other = (make_group(team=people.team, task=make_task()) for _ in range(2))
    rows = [make_trajectory(group=group) for group in (wanted, other)]
    for row in rows:
        make_replay_entry(trajectory=row)
    page = sign_in(people.viewer)
    for url, found in (("/trajectories/", "tbody tr"), ("/replay/", "[data-queue] [data-entry]")):
        page.goto(url)
        expect(page.locator(found)).to_have_count(2)
        page.keyboard.press("/")
        page.keyboard.type(wanted.task.task_id)
        page.keyboard.press("Enter")
        expect(page.locator(found)).to_have_count(1)
        expect(page.locator("[data-search]")).to_have_value(wanted.task.task_id)


def test_each_key_of_an_experiments_tabs_can_be_pressed(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team, status="running")
    make_attempt(experiment)
    experiment.checkpoints.create(step=1, policy_version=1, path="/none/1")
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    assert page.locator("[data-tab]").count() == 11
    page.keyboard.press("?")
    keys = page.locator(".shortcuts kbd")
    expect(keys.first).to_be_visible()
    assert "10" not in keys.all_text_contents()
    page.keyboard.press("Escape")
    tenth = page.locator("[data-tab]").nth(9)
    name = tenth.get_attribute("data-tab")
    page.keyboard.press("0")
    page.wait_for_url(f"**/?tab={name}")


def test_trajectories_are_sorted_by_score_and_advantage(sign_in: SignIn, people: People):
    for number in (0.2, 0.9, 0.5):
        make_trajectory(team=people.team, score=number, advantage=-number)
    page = sign_in(people.viewer)
    page.goto("/trajectories/")
    scores = page.locator("tbody tr td:nth-child(5)")
    page.get_by_role("link", name="Score").click()
    expect(scores).to_have_text(["0.90", "0.50", "0.20"])
    page.get_by_role("link", name="Advantage").click()
    expect(scores).to_have_text(["0.20", "0.50", "0.90"])
    page.get_by_role("link", name="Advantage").click()
    expect(scores).to_have_text(["0.90", "0.50", "0.20"])


def test_an_ended_experiment_opens_with_its_curves(sign_in: SignIn, people: People):
    for status, is_first in (("finished", True), ("running", False)):
        experiment = make_experiment(team=people.team, status=status)
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=1, value=0.5)
        page = sign_in(people.viewer)
        page.goto(f"/experiments/{experiment.pk}/")
        curves, wall = (page.locator(name).bounding_box() for name in ("[data-charts]", "[data-part=wall]"))
        assert curves is not None
        assert wall is not None
        assert (curves["y"] < wall["y"]) is is_first


def test_lanes_statuses_and_ticks_have_room_at_800_pixels(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team, status="finished")
    group = make_group(experiment=experiment, size=8, num_final=8, num_scored=8)
    for member in range(8):
        make_trajectory(group=group, member=member, turns=2, reward=1.0, score=1.0, advantage=0.1)
    for step in (1, 2, 3):
        MetricPoint.objects.create(experiment=experiment, name="loss/entropy", step=step, value=step * 2e-7)
    page = sign_in(people.viewer)
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(f"/experiments/{experiment.pk}/?tab=groups")
    cut_off = "(card) => [...card.querySelectorAll('.member, .member *')].filter((part) => "
    cut_off += "part.getBoundingClientRect().right > card.getBoundingClientRect().right + 1).length"
    assert page.locator(".group-card").first.evaluate(cut_off) == 0
    page.goto("/trajectories/")
    expect(page.locator("tbody .col-status > *").first).to_have_css("white-space", "nowrap")
    page.goto(f"/experiments/{experiment.pk}/")
    chart = page.locator(".chart", has_text="Entropy").first
    expect(chart.locator(".ytick").first).to_be_attached()
    ticks = chart.locator(".ytick").all_text_contents()
    assert ticks
    assert not [tick for tick in ticks if tick[-1] in "nµm"], ticks


def test_every_chart_stays_inside_its_place(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team, status="finished")
    for name in ("rollout/success", "success/menu", "reward/task_score.v1", "advantage/std"):
        for step in (1, 2, 3):
            MetricPoint.objects.create(experiment=experiment, name=name, step=step, value=step / 8)
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    expect(page.locator(".chart .main-svg").nth(3)).to_be_attached()
    page.wait_for_function("() => document.querySelectorAll('.chart .js-plotly-plot').length === 4")
    too_wide = """[...document.querySelectorAll('.chart .js-plotly-plot')].filter(
        (plot) => plot.querySelector('.main-svg').clientWidth > plot.clientWidth + 1).length"""
    page.wait_for_function(f"() => {too_wide} === 0")
    page.get_by_role("button", name="Change theme").click()  # charts are drawn again, as with new numbers
    page.wait_for_timeout(200)
    fits = """[...document.querySelectorAll('.chart .js-plotly-plot')].every(
        (plot) => Math.abs(plot.querySelector('.main-svg').clientWidth - plot.clientWidth) <= 1)"""
    for width in (400, 1900):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => {fits}")
        heights = "[...document.querySelectorAll('.chart .js-plotly-plot')].map((plot) => plot.clientHeight)"
        assert page.evaluate(heights) == [190] * 4
        # No chart stands alone in a row that the others fill.
        ends = "(one) => one.getBoundingClientRect().right"
        gap = f"(all => ({ends})(all) - ({ends})(all.lastElementChild))(document.querySelector('.charts'))"
        assert abs(page.evaluate(gap)) <= 2
