"""From an alarm to its cause to its remedy: chart, evidence, and the clone that is filled in."""

from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_trajectory
from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.experiments.models import MetricPoint
from webapp.experiments.services import alarms

THRESHOLD = """() => {
    const chart = document.getElementById("chart-parse-errors-truncated-errored");
    const shapes = chart?.layout?.shapes ?? [];
    const isThere = (axis, value) => shapes.some((one) => one[axis + 0] === value && one[axis + 1] === value);
    return isThere("y", 0.3) && isThere("x", 9);
}"""


def test_an_alarm_leads_to_its_cause_its_trajectories_and_a_clone_with_the_remedy(
    sign_in: SignIn, people: People
) -> None:
    experiment = make_experiment(team=people.team)
    MetricPoint.objects.bulk_create(
        MetricPoint(experiment=experiment, name=name, step=step, value=value)
        for step in range(1, 12)
        for name, value in (
            ("rollout/parse_error_rate", 0.1 * (step > 8) * 8),
            ("optimiser/grad_norm", 1.0),
        )
    )
    checkpoint = experiment.checkpoints.create(step=5, policy_version=5, path="/none/step-5")
    worst = [
        make_trajectory(experiment=experiment, turns=0, num_turns=4, num_parse_errors=errors, step=9)
        for errors in (1, 3, 2)
    ][1]
    for name, limit in (("parse_collapse", 0.3), ("truncation", 0.7), ("zero_variance", 0.8)):
        fired = Alarm(name=name, step=9, value=0.9, limit=limit, message=f"{name} fired", remedy="Look")
        alarms.record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=9, alarms=(fired,)))

    page = sign_in(people.operator)
    page.goto(f"/experiments/{experiment.pk}/")
    expect(page.locator(".alarm").first).to_contain_text("parse_collapse fired")
    page.wait_for_function(THRESHOLD)
    page.locator("#alarm-truncation").get_by_role("link", name="Parse collapse").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Parse collapse")
    expect(page.locator("[data-cause]")).to_contain_text("Likely led to Truncation (since step 9)")
    page.wait_for_function(THRESHOLD)
    expect(page.locator("figure.chart")).to_have_count(1)
    expect(page.locator("table.evidence tbody tr").first).to_contain_text(f"#{worst.pk}")
    page.get_by_role("link", name="Clone with this remedy").click()

    expect(page.locator("#remedy")).to_contain_text("Remedy of Parse collapse")
    expect(page.get_by_label("Note")).to_have_value(
        f"Remedy of “Parse collapse” since step 9 of #{experiment.pk}"
    )
    half = experiment.settings.optimiser.learning_rate / 2
    expect(page.locator("#remedy")).to_contain_text("optimiser.learning_rate")
    expect(page.locator("[name='optimiser.learning_rate']")).to_have_value(f"{half:.10g}")
    expect(page.locator("[name='model.path']")).to_have_value(f"{checkpoint.path}/model")
    expect(page.locator("[data-parent-changes]")).to_contain_text(f"{half:.10g}")
