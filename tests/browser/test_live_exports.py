"""Charts and tables leave as files where they stand: on an experiment's page and in the list."""

from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment
from webapp.experiments.models import MetricPoint


def saved(page: Page, act) -> str:
    with page.expect_download() as found:
        act()
    return found.value.path().read_text()


def test_charts_and_tables_are_saved_where_they_stand(sign_in: SignIn, people: People) -> None:
    experiment = make_experiment(team=people.team, status="finished", name="Live run")
    for step in (1, 2, 3):
        MetricPoint.objects.create(experiment=experiment, name="loss/entropy", step=step, value=step / 4)
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    chart = page.locator("figure.chart", has_text="Entropy")
    expect(chart.locator(".main-svg").first).to_be_attached()

    def ask(form: str):
        chart.get_by_label("Export Entropy").click()
        chart.get_by_label(f"Entropy as {form}").click()

    assert "<svg" in saved(page, lambda: ask("SVG"))
    rows = ["series,step,value", "entropy,1,0.25", "entropy,2,0.5", "entropy,3,0.75"]
    assert saved(page, lambda: ask("CSV")).splitlines() == rows
    assert "\\addplot coordinates {(1,0.25) (2,0.5) (3,0.75)};" in saved(page, lambda: ask("LaTeX"))

    make_experiment(team=people.team, status="finished", name="Another run")  # one row is no table
    page.goto("/experiments/")
    table = saved(page, page.get_by_role("button", name="CSV").click)
    assert "Live run" in table
    assert "Finished" in table
