"""Anyone of a team finds a task that says nothing, sees why, and how it went."""

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_group, make_task, make_task_set, make_trajectory
from webapp.tasks_library.flags import MIN_TRIES


@pytest.mark.parametrize("width", [1280, 390])
def test_a_task_without_a_signal_is_found_and_explained(sign_in: SignIn, people: People, width: int):
    task = make_task(task_set=make_task_set("menus"))
    make_task(task_set=task.task_set, family="note")
    experiment = make_experiment(team=people.team, name="Menus")
    for step in range(MIN_TRIES):
        make_trajectory(group=make_group(experiment=experiment, task=task), reward=0.0, turns=2, step=step)
    page = sign_in(people.viewer)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/tasks/")
    page.get_by_role("link", name="menus").click()
    expect(page.get_by_text("Never solved")).to_be_visible()
    page.get_by_label("Family").select_option("note")
    expect(page.get_by_text("Never solved")).to_have_count(0)
    page.get_by_role("link", name="Clear").click()
    page.get_by_role("link", name=task.instruction).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(task.instruction)
    expect(page.get_by_role("definition").filter(has_text=f"0 of {MIN_TRIES} tries")).to_be_visible()
    expect(page.get_by_role("img", name="The screen at the start")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("region", name="Last failures").get_by_role("link").first.click()
    page.wait_for_url("**/trajectories/*/")
