"""Ctrl+K and the four places: to a page, to a row by its number, and what may be done, with keys alone."""

from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment
from webapp.experiments.models import Experiment


def test_a_run_is_found_and_cancelled_with_keys_alone(sign_in: SignIn, people: People):
    waiting = make_experiment(team=people.team, status="queued", name="waits")
    page = sign_in(people.operator)
    page.goto("/")
    place = page.get_by_role("navigation", name="Data", exact=True)
    expect(place).to_be_hidden()
    palette, field = page.locator("#palette"), page.get_by_role("combobox", name="Go to, or do, anything")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("scann")
    expect(palette.get_by_role("option", selected=True)).to_contain_text("Scanners")
    expect(field).to_have_attribute("aria-activedescendant", "palette-0")
    page.keyboard.press("Enter")
    page.wait_for_url("**/scanners/")
    expect(place.get_by_role("link", name="Scanners")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Control+k")
    page.keyboard.type(f"cancel {waiting.pk}")
    expect(palette.get_by_role("option", selected=True)).to_have_text(f"Cancel #{waiting.pk} waits")
    page.keyboard.press("Enter")
    expect(page.locator("#confirm")).to_contain_text(f"Cancel #{waiting.pk}?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 experiment had not begun.")).to_be_visible()
    assert Experiment.objects.get(pk=waiting.pk).status == "cancelled"
