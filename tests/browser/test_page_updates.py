"""What people are in the middle of survives an update of the page: focus, input, scroll, opened details."""

import socket
import threading

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.recorded_trajectories import Recorder
from testing.factories import make_experiment, make_group, make_trajectory
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.queries.streams import experiment_stream
from webapp.experiments.services import metrics
from webapp.experiments.services.experiments import set_priority
from webapp.experiments.services.statuses import record_incident
from webapp.live.event_publishing import publish

SMALL = {"width": 1280, "height": 500}


@pytest.fixture
def waiting(people: People) -> list[Experiment]:
    """Three experiments in the order of the queue."""
    return [
        make_experiment(
            team=people.team, name=f"waiting {number}", status=ExperimentStatus.QUEUED, priority=0
        )
        for number in range(3)
    ]


def places(page: Page) -> list[str]:
    """Ids of the waiting experiments, in the order of the page."""
    return page.locator("[data-queued]").evaluate_all("rows => rows.map(row => row.dataset.queued)")


def mark(page: Page, selector: str) -> None:
    """Leaves a mark on the element itself, which an element put in its place would not have."""
    page.locator(selector).first.evaluate("element => (element.isTheSame = true)")


def is_marked(page: Page, selector: str) -> bool:
    return page.locator(selector).first.evaluate("element => element.isTheSame === true")


def test_ticks_and_focus_stay_when_the_list_of_experiments_is_updated(
    sign_in: SignIn, people: People, waiting: list[Experiment]
):
    page = sign_in(people.operator)
    page.goto("/experiments/")
    page.get_by_label(f"Select #{waiting[0].pk}").check()
    page.get_by_role("link", name="waiting 1").focus()
    added = make_experiment(team=people.team, name="added meanwhile", status=ExperimentStatus.QUEUED)
    set_priority(experiment=added, priority=3)

    expect(page.get_by_text("added meanwhile")).to_be_visible()
    expect(page.get_by_label(f"Select #{waiting[0].pk}")).to_be_checked()
    expect(page.locator("[data-bulk-count]")).to_have_text("1")
    expect(page.get_by_role("link", name="waiting 1")).to_be_focused()


def test_a_number_that_is_being_typed_stays_while_the_queue_moves(
    sign_in: SignIn, people: People, waiting: list[Experiment]
):
    page = sign_in(people.operator)
    page.goto("/queue/")
    field = page.get_by_label(f"Priority of #{waiting[2].pk}")
    field.press("Control+A")
    page.keyboard.type("12")
    set_priority(experiment=waiting[1], priority=5)

    expect(page.locator("[data-queued]").first).to_have_attribute("data-queued", str(waiting[1].pk))
    expect(field).to_be_focused()
    expect(field).to_have_value("12")
    page.keyboard.press("Tab")
    expect(page.locator("[data-queued]").first).to_have_attribute("data-queued", str(waiting[2].pk))
    waiting[2].refresh_from_db()
    assert waiting[2].priority == 12


def test_experiments_are_moved_by_button_and_by_mouse_and_bad_numbers_are_named(
    sign_in: SignIn, people: People, waiting: list[Experiment]
):
    first, second, third = (str(experiment.pk) for experiment in waiting)
    page = sign_in(people.operator)
    page.goto("/queue/")
    assert places(page) == [first, second, third]
    page.get_by_label(f"Move #{third} earlier").click()
    expect(page.locator("[data-queued]").nth(1)).to_have_attribute("data-queued", third)
    page.get_by_label(f"Move #{first} later").click()
    expect(page.locator("[data-queued]").first).to_have_attribute("data-queued", third)
    page.locator(f'[data-queued="{second}"] .grip').drag_to(
        page.locator(f'[data-queued="{third}"]'), target_position={"x": 80, "y": 4}
    )
    expect(page.locator("[data-queued]").first).to_have_attribute("data-queued", second)

    field = page.get_by_label(f"Priority of #{first}")
    field.fill("high")
    field.blur()
    message = "field => field.validationMessage.includes('not a whole number')"
    page.wait_for_function(f"() => ({message})(document.getElementById('priority-{first}'))")
    expect(field).to_have_value("high")


def test_opened_details_selected_text_scroll_and_charts_stay_on_the_experiment_page(
    sign_in: SignIn, people: People
):
    experiment = make_experiment(team=people.team)
    for number in range(3):
        record_incident(experiment_id=experiment.pk, kind="resumed", message=f"Resumed {number}")
    for step in (1, 2, 3):
        report_step(experiment, step)
    page = sign_in(people.viewer)
    page.set_viewport_size(SMALL)
    page.goto(f"/experiments/{experiment.pk}/")
    page.locator("#incidents summary").click()
    chart = "#chart-entropy .main-svg"
    expect(page.locator(chart).first).to_be_visible()
    page.wait_for_function("() => document.getElementById('chart-entropy').data?.[0].x.length === 3")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#incidents strong'))")
    page.evaluate("scrollTo(0, 200)")
    seen_at = page.locator("nav.tabs").bounding_box()["y"]
    for selector in ("#incidents", chart, "#chart-entropy"):
        mark(page, selector)

    record_incident(experiment_id=experiment.pk, kind="resumed", message="Resumed again")
    report_step(experiment, 4)
    expect(page.get_by_text("4 events")).to_be_visible()
    page.wait_for_function("() => document.getElementById('chart-entropy').data[0].x.length === 4")
    assert page.locator("#incidents").evaluate("details => details.open")
    assert page.evaluate("getSelection().toString()") == "Resumed again"
    assert page.locator("nav.tabs").bounding_box()["y"] == pytest.approx(seen_at, abs=2)
    assert all(is_marked(page, selector) for selector in ("#incidents", chart, "#chart-entropy"))


def report_step(experiment: Experiment, step: int) -> None:
    metrics.record_metrics(
        experiment_id=experiment.pk,
        attempt=1,
        step=step,
        values={"loss/entropy": 1 / step},
        policy_version=step,
    )


def test_the_group_below_the_viewer_keeps_its_scroll_and_its_images(sign_in: SignIn, people: People):
    group = make_group(experiment=make_experiment(team=people.team), size=12)
    runner = Recorder(group)
    runner.turn()
    siblings = [make_trajectory(group=group, turns=2, member=member) for member in range(1, 12)]
    page = sign_in(people.viewer)
    page.set_viewport_size(SMALL)
    page.goto(f"/trajectories/{runner.trajectory.pk}/")
    last = f'[data-sibling="{siblings[-1].pk}"] img'
    mark(page, last)
    scrolled = page.locator(".lane-rows").evaluate(
        "rows => (rows.scrollTop = rows.scrollHeight, rows.scrollTop)"
    )
    assert scrolled > 0
    runner.turn()

    expect(page.locator(".lane-row.is-watched .lane-cell")).to_have_count(2)
    expect(page.locator(".lane-row.is-watched .lane-cell.is-current")).to_have_count(1)
    assert page.locator(".lane-rows").evaluate("rows => rows.scrollTop") == scrolled
    assert is_marked(page, last)


SUBSCRIBE = """async ([stream, name]) => {
    const { subscribe } = await import("/static/js/lib/live_events.js");
    window[name] = [];
    subscribe(stream, 0, ({ type }) => window[name].push(type));
}"""


def test_a_script_that_subscribes_late_gets_what_the_page_has_had_before(sign_in: SignIn, people: People):
    stream = experiment_stream(make_experiment(team=people.team).pk)
    page = sign_in(people.viewer)
    page.goto("/team/")
    page.evaluate(SUBSCRIBE, [stream, "first"])
    publish(stream, "stage.started", {})
    page.wait_for_function("() => window.first.length === 1")
    page.evaluate(SUBSCRIBE, [stream, "late"])
    publish(stream, "stage.finished", {})
    page.wait_for_function("() => window.late.length === 2")
    assert page.evaluate("[window.first, window.late]") == [["stage.started", "stage.finished"]] * 2


def test_a_part_whose_answer_is_cut_off_is_fetched_again(
    sign_in: SignIn, people: People, waiting: list[Experiment]
):
    """As when a web process ends in the middle of an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=cut_off, args=[server], daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        page = sign_in(people.operator)
        page.goto("/experiments/")
        part = page.locator("[data-part]", has=page.get_by_text("waiting 1")).first
        url = part.get_attribute("data-part-url")
        page.route(f"**{url}*", lambda route: route.continue_(url=address), times=1)
        make_experiment(team=people.team, name="added meanwhile", status=ExperimentStatus.QUEUED)
        set_priority(experiment=waiting[0], priority=3)
        expect(page.locator(".is-stale")).to_have_count(1)
        expect(page.get_by_text("added meanwhile")).to_be_visible()
        expect(page.locator(".is-stale")).to_have_count(0)


def cut_off(server: socket.socket) -> None:
    """Answer one request with a part of the promised bytes."""
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>")
