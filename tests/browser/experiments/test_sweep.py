"""A sweep from the launch form to its end: its cost, its arms, its charts, one button for the whole."""

from django.utils import timezone
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation
from webapp.experiments.models import Experiment, ExperimentStatus, Sweep
from webapp.sweeps.services.arms import advance_sweeps


def finish(sweep: Sweep, number: int, *solved: int) -> None:
    rows = Experiment.objects.filter(arm__sweep=sweep, arm__number=number).order_by("id")
    for experiment, won in zip(rows, solved, strict=True):
        make_evaluation(experiment, won=2, total=20, temperature=0)
        make_evaluation(experiment, name="after", step=9, won=won, total=20, temperature=0)
    rows.update(status=ExperimentStatus.FINISHED, ended_at=timezone.now())
    advance_sweeps()


def test_a_sweep_is_launched_judged_and_cancelled_as_one(
    sign_in: SignIn, people: People, launchable: str
) -> None:
    page = sign_in(people.operator)
    page.goto("/experiments/launch/?preset=first-desk")
    page.get_by_label("Model", exact=True).fill(launchable)
    page.get_by_text("Seeds and sweep").click()
    page.get_by_label("Search over").fill("optimiser.learning_rat = 1e-3, 2e-3, 3e-3")
    page.get_by_label("Seeds per arm").fill("2")
    problem = page.locator("[data-error-of=sweep_axes]")
    expect(problem).to_contain_text("did you mean optimiser.learning_rate?")
    page.get_by_label("Search over").fill("optimiser.learning_rate = 1e-3, 2e-3, 3e-3")
    expect(page.locator("[data-sweep-cost]")).to_contain_text("6 experiments")
    expect(problem).to_be_hidden()
    page.get_by_role("button", name="Launch", exact=True).click()

    expect(page.locator(".sweep-arms tbody tr")).to_have_count(2)
    sweep = Sweep.objects.get()
    finish(sweep, 1, 12, 14)
    finish(sweep, 2, 5, 6)
    expect(page.locator("[data-best]")).to_contain_text("Arm 1")
    expect(page.locator("[data-best]")).to_contain_text("65.0 %")
    expect(page.locator(".sweep-arms tbody tr")).to_have_count(3)
    page.reload()
    expect(page.locator(".charts .js-plotly-plot")).to_have_count(2)
    expect(page.locator("[data-cost]")).to_contain_text("GPU-hours")

    page.locator("#cancel-sweep button").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.locator("[data-sweep-status=cancelled]")).to_be_visible()
    assert set(Experiment.objects.values_list("status", flat=True)) == {"finished", "cancelled"}
    page.goto("/experiments/")
    expect(page.locator("tr[id^=sweep-]")).to_contain_text("3 / 3")
    expect(page.locator("tr[id^=experiment-]")).to_have_count(0)
