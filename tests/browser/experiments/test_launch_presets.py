"""Choosing a preset by purpose, by mouse and by keyboard, and a model size with a number of GPUs."""

from playwright.sync_api import Page, Route, expect

from testing.browser.people import People, SignIn
from training.planning.presets import GROUPS


def open_launch(sign_in: SignIn, people: People, preset: str = "") -> Page:
    page = sign_in(people.operator)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"/experiments/launch/?preset={preset}" if preset else "/experiments/launch/")
    return page


def test_the_form_begins_above_the_fold(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people)
    box = page.locator("details[data-section=essentials]").bounding_box()
    assert box is not None
    assert box["y"] < 500


def test_the_groups_are_walked_by_arrow_keys_and_a_preset_is_told_before_it_is_taken(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people)
    page.get_by_role("tab", name="First steps").focus()
    for _ in range(list(GROUPS).index("osworld")):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="OSWorld")).to_be_focused()
    expect(page.get_by_role("link", name="First desk, from scratch")).to_be_hidden()
    expect(page.locator(".preset-about:visible")).to_contain_text("OSWorld")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="AReaL OSWorld, smoke", exact=True)).to_be_focused()
    expect(page.locator(".preset-about:visible")).to_contain_text(
        "One step of two short OSWorld trajectories"
    )
    page.keyboard.press("Enter")
    page.wait_for_url("**preset=areal-osworld-smoke")
    expect(page.get_by_role("tab", name="OSWorld")).to_have_attribute("aria-selected", "true")


def test_a_size_and_a_number_of_gpus_set_the_layout_and_keep_what_was_typed(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, "qwen3-vl-first-desk")
    steps = page.locator('[name="algorithm.num_steps"]')
    expect(page.locator("[data-scale-note]")).to_contain_text("of 150 GB (H200, sold as 141 GB) per GPU")
    steps.fill("7")
    held: list[Route] = []

    def answer_the_first_last(route: Route) -> None:
        held.append(route)
        if len(held) < 2:
            return
        for late in reversed(held):
            late.fulfill(response=late.fetch())

    page.route("**/launch/scale/", answer_the_first_last)
    page.locator("[data-scale]").get_by_text("8B").click()
    page.locator("[data-scale]").get_by_text("4", exact=True).click()
    expect(page.locator("[data-scale-note]")).to_contain_text("2 GPUs train all weights; 2 engine servers")
    expect(page.locator('[name="model.path"]')).to_have_value("Qwen3-VL-8B-Instruct")
    expect(page.locator('[name="optimiser.num_processes"]')).to_have_value("2")
    expect(page.locator('[name="engine.placement"]')).to_have_value("own")
    expect(steps).to_have_value("7")
    expect(page.locator("#preflight-result")).to_contain_text("Asks for 4 GPUs")


def test_sizes_are_offered_only_where_they_mean_something(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, "first-desk")
    expect(page.get_by_role("tab", name="First steps")).to_be_visible()
    expect(page.locator("[data-scale]")).to_have_count(0)
