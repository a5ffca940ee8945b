"""The tree beside the screen in Chromium: rows and boxes point at each other, by pointer and by keyboard."""

from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_trajectory
from testing.observed_texts import read_with, tree, widget

BODY = widget("text", "Body", (40, 100, 400, 250), "fox")
SAVE = widget("push-button", "Save", (50, 40, 100, 40))


def test_rows_and_boxes_point_at_each_other(sign_in: SignIn, people: People):
    trajectory = make_trajectory(team=people.team, turns=2)
    first, second = trajectory.turns.order_by("index")
    read_with(first, accessibility=tree(BODY), terminal="user@desk:~$")
    read_with(second, accessibility=tree(BODY, SAVE), terminal="user@desk:~$ ls")
    page: Page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/#turn=2")
    page.keyboard.press("a")
    rows, box = page.locator("[data-tree-rows] [data-row]"), page.locator("[data-widget-box]")
    expect(rows).to_have_count(3)
    expect(page.locator("[data-tree-state]")).to_contain_text("1 new, 0 changed, 0 gone")
    rows.nth(2).hover()
    expect(box).to_be_visible()
    frame, drawn = page.locator("[data-frame]").bounding_box(), box.bounding_box()
    scale = frame["width"] / second.width
    assert abs(drawn["x"] - frame["x"] - 50 * scale) < 3
    assert abs(drawn["width"] - 100 * scale) < 3
    page.mouse.move(frame["x"] + 60 * scale, frame["y"] + 200 * scale)
    expect(rows.nth(1)).to_have_class("tree-row is-pointed")
    page.locator("[data-tree-changes]").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("Save")
    page.locator("[data-tree-changes]").click()
    page.locator("[data-tree-search]").fill("fox")
    expect(rows).to_have_count(1)
    page.locator("[data-tree-search]").fill("")
    rows.first.focus()
    for key, selected in (("ArrowDown", 1), ("End", 2), ("Home", 0)):
        page.keyboard.press(key)
        expect(rows.nth(selected)).to_be_focused()
    expect(page.locator("[data-place]")).to_have_text("Turn 2 of 2")
    page.locator("#side-tab-tree").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-terminal-text]")).to_have_text("user@desk:~$ ls")
    expect(page.locator("[data-terminal-state]")).to_contain_text("Another text")
    page.keyboard.press("k")
    expect(page.locator("[data-terminal-text]")).to_have_text("user@desk:~$")
