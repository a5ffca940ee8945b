"""An operator tries a reward on what is stored, compares, saves a version, and launches with it."""

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_group, make_trajectory
from webapp.experiments.models import Experiment, SavedRewardPreset

SIZES = {"wide": (1280, 800), "phone": (390, 844)}


def furnish(people: People) -> None:
    experiment = make_experiment(team=people.team, owner=people.operator, name="Menus")
    for rewards in ((1.0, 0.0), (0.0, 0.0)):
        group = make_group(experiment=experiment)
        for member, reward in enumerate(rewards):
            make_trajectory(group=group, member=member, reward=reward, turns=2 + member)


def open_lab(sign_in: SignIn, people: People, size: str) -> Page:
    furnish(people)
    page = sign_in(people.operator)
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    page.goto("/rewards/")
    expect(page.get_by_role("heading", name="Against the stored rewards")).to_be_visible()
    return page


@pytest.mark.parametrize("size", SIZES)
def test_a_reward_is_tried_compared_saved_and_launched(
    sign_in: SignIn, people: People, launchable: str, size: str
):
    page = open_lab(sign_in, people, size)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Add a term").click()
    row = page.locator("[data-row]").last
    row.get_by_label("Term", exact=True).fill("long")
    row.get_by_label("Expression").fill("speed")
    expect(page.get_by_role("alert").filter(has_text="undeclared reference to 'speed'")).to_be_visible()
    row.get_by_label("Expression").fill("num_turns / max_turns")
    row.get_by_label("Aggregate").select_option("once")
    row.get_by_label("Weight").fill("2")
    effects = page.get_by_role("row", name="Groups that stop being flat")
    expect(effects).to_contain_text("1 #")
    expect(page.get_by_role("row", name="long")).to_contain_text("Can be farmed")
    page.get_by_label("Compare with").select_option("task-score.v1")
    expect(page.get_by_role("heading", name="Terms (task-score.v1)")).to_be_visible()

    page.get_by_label("Name", exact=True).fill("longer")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as longer.v1.")).to_be_visible()
    assert SavedRewardPreset.objects.get().rewards.terms.terms[-1].expression == "num_turns / max_turns"
    page.get_by_role("link", name="Launch with longer.v1").click()
    expect(page.locator("[name='rewards.preset']")).to_have_value("longer.v1")
    page.locator("#launch-button").click()
    page.wait_for_url(lambda url: "launch" not in url)
    assert Experiment.objects.latest("pk").settings.rewards == SavedRewardPreset.objects.get().rewards
