"""Curation beyond one entry at a time, in Chromium: clusters, orders, single turns."""

import re

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import (
    make_group,
    make_replay_entry,
    make_task,
    make_trajectory,
    make_user,
)
from webapp.accounts.models import Role
from webapp.replay.models import BufferSnapshot, ProcessLabel, ReplayEntry
from webapp.replay.services.clusters import compare_waiting

SIZES = pytest.mark.parametrize("width", [1280, 390])


@pytest.fixture
def annotator(people: People):
    return make_user(Role.ANNOTATOR, team=people.team, name="anna")


def make_alike(people: People, number: int) -> list[ReplayEntry]:
    """Entries of one task with the same clicks on the same screens."""
    task = make_task()
    return [
        make_replay_entry(trajectory=make_trajectory(group=make_group(team=people.team, task=task), turns=4))
        for _ in range(number)
    ]


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@SIZES
def test_the_best_of_a_cluster_are_kept_and_undo_brings_the_rest_back(
    sign_in: SignIn, people: People, annotator, width: int
):
    make_alike(people, 6)
    assert sum(compare_waiting()) == 6
    page = sign_in(annotator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/replay/clusters/")
    assert fits(page)
    page.locator("[data-cluster] button").click()
    expect(page.locator(".notice").first).to_contain_text("3 entries rejected as near-duplicates")
    assert ReplayEntry.objects.filter(verdict="rejected").count() == 3
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice").first).to_contain_text("3 labels undone")
    assert not ReplayEntry.objects.filter(verdict="rejected").exists()
    page.goto("/replay/list/?sort=rarity")
    assert fits(page)
    expect(page.locator("tbody tr")).to_have_count(6)


@SIZES
def test_rules_are_tried_saved_and_kept_as_a_snapshot(sign_in: SignIn, people: People, annotator, width: int):
    for entry in make_alike(people, 4):
        ReplayEntry.objects.filter(pk=entry.pk).update(verdict="accepted")
    page = sign_in(annotator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/replay/policies/")
    expect(page.locator("[data-entering]")).to_have_text("4")
    page.get_by_label("At most per task").fill("2")
    page.get_by_role("button", name="Try").click()
    expect(page.locator("[data-entering]")).to_have_text("2")
    expect(page.get_by_role("cell", name="Enough of its task")).to_be_visible()
    page.get_by_label("Save these rules as").fill("few")
    page.get_by_role("button", name="Save as the next version").click()
    page.get_by_label("Name of a snapshot by few.v1").fill("monday")
    page.get_by_role("button", name="Take a snapshot").click()
    expect(page.locator(".notice").first).to_contain_text("keeps 2 entries; launch with replay.snapshot")
    assert fits(page)
    assert BufferSnapshot.objects.get().num_entries == 2


@SIZES
def test_two_people_label_blind_by_key_and_a_third_settles_it(
    sign_in: SignIn, people: People, annotator, width: int
):
    make_alike(people, 1)
    bert = make_user(Role.ANNOTATOR, team=people.team, name="bert")
    page = sign_in(annotator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/replay/reviews/")
    page.get_by_label("Name", exact=True).fill("monday")
    for name in ("anna", "bert"):
        page.get_by_label(name, exact=True).check()
    page.get_by_role("button", name="Begin").click()
    for user, key in ((annotator, "g"), (bert, "r")):
        mine = sign_in(user)
        mine.set_viewport_size({"width": width, "height": 844})
        mine.goto(page.url + "label/")
        expect(mine.locator("[data-image] img")).to_be_visible()
        assert fits(mine)
        with mine.expect_navigation():
            mine.keyboard.press(key)
    page.reload()
    expect(page.locator("[data-item]")).to_contain_text("Gold")
    assert fits(page)
    page.locator("[data-item]").get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Nothing to settle")).to_be_visible()
    assert ReplayEntry.objects.get().verdict == "accepted"


@SIZES
def test_turns_are_rated_by_key_trimmed_and_corrected_by_a_click(
    sign_in: SignIn, people: People, annotator, width: int
):
    (entry,) = make_alike(people, 1)
    page = sign_in(annotator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/replay/turns/{entry.trajectory_id}/")
    assert fits(page)
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("b")
    card = page.locator("#turn-2")
    expect(card).to_have_attribute("data-state", "context")
    assert ProcessLabel.objects.get().ratings == {"1": -1}

    card.get_by_text("Correct the action").click()
    card.locator("[data-screen]").click(position={"x": 30, "y": 40})
    expect(card.locator("[data-action]")).to_have_value(re.compile(r"pyautogui\.click\(\d+, \d+\)"))
    card.get_by_role("button", name="Correct", exact=True).click()
    expect(card.locator("ins")).to_contain_text("Click")
    expect(page.locator("#turn-3")).to_have_attribute("data-state", "cut")
    entry.refresh_from_db()
    assert entry.edit["last"] == 1


@SIZES
def test_an_entry_is_split_at_a_turn_and_joined_again(sign_in: SignIn, people: People, annotator, width: int):
    (entry,) = make_alike(people, 1)
    page = sign_in(annotator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/replay/turns/{entry.trajectory_id}/")
    page.locator("#turn-3").get_by_role("button", name="Split here").click()
    part = ReplayEntry.objects.get(part=2)
    expect(page.get_by_text(f"entry {part.pk} begins here")).to_be_visible()
    expect(page.locator("#turn-2")).to_have_attribute("data-state", "context")
    expect(page.locator("#turn-3")).to_have_attribute("data-state", "trained")
    assert fits(page)
    page.get_by_role("link", name=f"Entry {entry.pk}").last.click()
    expect(page.locator("#turn-3")).to_have_attribute("data-state", "cut")
    page.goto(f"/replay/{entry.pk}/")
    expect(page.get_by_text("split off")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("undid a label")).to_be_visible()
    assert ReplayEntry.objects.get() == entry
