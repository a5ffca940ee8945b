"""The launch form's desktops: only the knobs of the chosen provider are shown, and nothing typed is lost."""

from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn


def expect_headings(page: Page, *headings: str) -> None:
    """Once the form has followed its last change."""
    shown = page.locator('[data-section="desktops"] [data-group]:visible')
    expect(shown).to_have_text(list(headings), use_inner_text=True)


def test_a_providers_knobs_appear_with_it_and_those_that_it_drives_with_them(sign_in: SignIn, people: People):
    page = sign_in(people.operator)
    page.goto("/experiments/launch/")
    page.locator("details[data-section=desktops]").evaluate("element => element.open = true")
    provider = page.get_by_label("Provider", exact=True)
    expect_headings(page, "X11")
    provider.select_option("remote")
    expect_headings(page, "Remote")
    page.get_by_label("URLs", exact=True).fill("http://10.0.0.5:8100")
    provider.select_option("osworld")
    expect(page.locator('[data-knob="desktops.remote.urls"]')).to_be_visible()  # changed: not out of sight
    expect_headings(page, "X11", "Remote", "OSWorld")
    page.locator('[data-knob="desktops.remote.urls"] [data-reset]').click()
    page.locator('[name="desktops.osworld.machines"]').select_option("qemu")
    expect_headings(page, "QEMU", "OSWorld")
    provider.select_option("x11")
    expect(page.locator('[data-knob="desktops.qemu.image"]')).to_be_hidden()
    page.locator("[data-knob-search]").fill("token secret")
    expect(page.locator('[data-knob="desktops.gateway.token_secret"]')).to_be_visible()
