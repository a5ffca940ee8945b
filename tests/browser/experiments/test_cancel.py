"""Cancelling: with a question first, seen live by everybody who looks."""

from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.services.statuses import change_status


def test_a_running_experiment_is_cancelled_after_a_question_and_the_page_follows(
    sign_in: SignIn, people: People
):
    experiment = make_experiment(team=people.team, owner=people.operator, name="To be stopped")
    page = sign_in(people.operator)
    page.goto(f"/experiments/{experiment.pk}/")
    watcher = sign_in(people.viewer)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Go back").click()
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.RUNNING

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_text("Cancel requested.")).to_be_visible()
    expect(page.locator("h1 [data-status=cancelling]")).to_be_visible()

    watcher.goto(f"/experiments/{experiment.pk}/")
    expect(watcher.locator("[data-live-pill]").first).to_contain_text("Live")
    expect(watcher.get_by_role("button", name="Cancel")).to_have_count(0)
    change_status(experiment.pk, ExperimentStatus.CANCELLED, message="Cancelled.")
    expect(watcher.locator("h1 [data-status=cancelled]")).to_be_visible()
    expect(page.locator("h1 [data-status=cancelled]")).to_be_visible()


def test_ticked_experiments_are_cancelled_together(sign_in: SignIn, people: People):
    first, second, kept = (
        make_experiment(team=people.team, status=ExperimentStatus.QUEUED, name=name)
        for name in ("first", "second", "kept")
    )
    page = sign_in(people.operator)
    page.goto("/experiments/")
    page.get_by_label(f"Select #{first.pk}").check()
    page.get_by_label(f"Select #{second.pk}").check()
    expect(page.locator("[data-bulk-count]")).to_have_text("2")
    page.locator("[data-bulk-bar]").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel them").click()

    expect(page.get_by_text("Cancel requested for 2 experiments.")).to_be_visible()
    statuses = dict(Experiment.objects.values_list("name", "status"))
    assert statuses == {"first": "cancelled", "second": "cancelled", "kept": "queued"}
    assert kept.pk

    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("2 wait again.")).to_be_visible()
    statuses = dict(Experiment.objects.values_list("name", "status"))
    assert statuses == {"first": "queued", "second": "queued", "kept": "queued"}


def test_one_that_waits_is_cancelled_without_a_question_and_taken_back(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team, status=ExperimentStatus.QUEUED)
    page = sign_in(people.operator)
    page.goto(f"/experiments/{experiment.pk}/")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("1 experiment had not begun.")).to_be_visible()
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.CANCELLED
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("1 waits again.")).to_be_visible()


def test_on_a_phone_the_older_of_two_ticked_runs_is_the_baseline(sign_in: SignIn, people: People):
    older, newer = (make_experiment(team=people.team, name=name) for name in ("a", "b"))
    page = sign_in(people.operator)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/experiments/")
    page.get_by_label(f"Select #{newer.pk}").check()
    page.get_by_label(f"Select #{older.pk}").check()
    difference = page.get_by_role("link", name="First difference")
    expect(difference).to_have_attribute(
        "href", f"/experiments/tasks/?id={older.pk}&id={newer.pk}&open=first"
    )
    page.get_by_role("link", name="Compare").click()
    page.wait_for_url(f"**/compare/?id={older.pk}&id={newer.pk}")


def test_the_queue_is_reordered_by_its_buttons(sign_in: SignIn, people: People):
    first, second = (
        make_experiment(team=people.team, status=ExperimentStatus.QUEUED, name=name) for name in ("a", "b")
    )
    page = sign_in(people.operator)
    page.goto("/queue/")
    names = page.locator("tr[data-queued] .title")
    expect(names).to_have_text(["a", "b"])
    page.get_by_label(f"Move #{second.pk} earlier").click()
    expect(names).to_have_text(["b", "a"])
    assert first.pk
