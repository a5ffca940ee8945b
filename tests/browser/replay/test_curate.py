"""The replay inbox in Chromium, with the keyboard alone."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from testing import first_desk_screens
from testing.browser.people import People, SignIn
from testing.browser.recorded_trajectories import store
from testing.factories import make_replay_entry, make_trajectory, make_turn, make_user
from webapp.accounts.models import Role
from webapp.replay.models import LabelEvent, ReplayEntry
from webapp.replay.services.inbox import offer_to_inbox
from webapp.replay.services.labels import label_entry


def make_entries(people: People, number: int) -> list[ReplayEntry]:
    """Entries with screens of their own, newest first as in the queue."""
    entries = []
    for row in range(number):
        trajectory = make_trajectory(team=people.team, turns=0)
        screens = [
            first_desk_screens.menu_screen(row % 8),
            first_desk_screens.menu_screen(row % 8, chosen=f"choice {row}"),
        ]
        for index, screen in enumerate(screens):
            make_turn(trajectory, index, frame=store(people.team, screen), is_last=index == 1)
        trajectory.last_frame = store(people.team, screens[-1])
        trajectory.save()
        entries.append(make_replay_entry(trajectory=trajectory))
    return entries[::-1]


@pytest.fixture
def annotator(people: People):
    return make_user(Role.ANNOTATOR, team=people.team, name="anna")


def expect_entry(page: Page, entry: ReplayEntry) -> None:
    """The entry is the selected one, and its last screen is what is seen."""
    expect(page.locator(".queue-row[aria-selected=true]")).to_have_attribute("data-entry", str(entry.pk))
    frame = entry.trajectory.turns.last().frame
    expect(page.locator(f'[data-image] img[src*="{frame}"]')).to_be_visible()


def expect_verdicts(entries: list[ReplayEntry], verdicts: list[str], page: Page) -> None:
    """What is stored, once the last request has come back."""

    def stored() -> list[str]:
        return [ReplayEntry.objects.get(pk=entry.pk).verdict for entry in entries]

    expect_stored(stored, verdicts, page)


def expect_stored(read: Callable[[], object], wanted: object, page: Page) -> None:
    """`read()` becomes `wanted`."""
    deadline = time.monotonic() + 45
    while read() != wanted and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert read() == wanted


def test_one_key_labels_and_shows_the_next_and_undo_walks_all_the_way_back(
    sign_in: SignIn, people: People, annotator
):
    entries = make_entries(people, 5)
    page = sign_in(annotator)
    page.goto("/replay/")
    expect_entry(page, entries[0])
    for key, following in [("a", 1), ("r", 2), ("s", 3), ("g", 4)]:
        page.keyboard.press(key)
        expect_entry(page, entries[following])
    expect_verdicts(entries, ["accepted", "rejected", "inbox", "gold", "inbox"], page)
    for verdict, number in [("inbox", 2), ("accepted", 1), ("gold", 1), ("rejected", 1)]:
        expect(page.locator(f'[data-count="{verdict}"]')).to_have_text(str(number))

    for place in (3, 1, 0):
        page.keyboard.press("z")
        expect_entry(page, entries[place])
        expect(page.locator("[data-verdict-now]")).to_have_text("Inbox")
    expect_verdicts(entries, ["inbox"] * 5, page)
    assert LabelEvent.objects.count() == 6
    page.keyboard.press("z")
    expect(page.locator("[data-problem]")).to_contain_text("no label left")


def test_labels_given_faster_than_the_server_answers_all_arrive(sign_in: SignIn, people: People, annotator):
    entries = make_entries(people, 8)
    page = sign_in(annotator)
    page.goto("/replay/")
    for place, key in enumerate("agragrag"):
        expect_entry(page, entries[place])
        page.keyboard.press(key)
    expect(page.locator("[data-done]")).to_be_visible()
    expect(page.locator("[data-count=inbox]")).to_have_text("0")
    names = {"a": "accepted", "g": "gold", "r": "rejected"}
    expect_verdicts(entries, [names[key] for key in "agragrag"], page)


def test_turns_are_stepped_and_played_without_a_mouse(sign_in: SignIn, people: People, annotator):
    make_entries(people, 1)
    page = sign_in(annotator)
    page.goto("/replay/")
    place = page.locator("[data-place]")
    expect(place).to_have_text("Turn 2 of 2")
    page.keyboard.press("k")
    expect(place).to_have_text("Turn 1 of 2")
    expect(page.locator(".overlay-ring")).to_be_visible()
    page.keyboard.press(" ")
    expect(place).to_have_text("Turn 2 of 2")


def test_tags_and_a_note_are_kept_and_taken_back(sign_in: SignIn, people: People, annotator):
    entry = make_entries(people, 1)[0]
    page = sign_in(annotator)
    page.goto("/replay/")
    expect_entry(page, entry)
    page.keyboard.press("t")
    page.keyboard.type("Clean, detour")
    page.keyboard.press("Enter")
    expect(page.locator('[data-tag="clean"]')).to_have_class("tag is-on")
    page.keyboard.press("n")
    page.keyboard.type("a is for accept, but not in here")
    page.keyboard.press("Escape")

    def stored() -> list[object]:
        entry.refresh_from_db()
        return [entry.tags, entry.note, entry.verdict]

    expect_stored(stored, [["clean", "detour"], "a is for accept, but not in here", "inbox"], page)
    page.keyboard.press("z")
    expect(page.locator("[data-note]")).to_have_value("")
    expect_stored(stored, [["clean", "detour"], "", "inbox"], page)


def test_a_conflict_names_the_colleague_and_shows_their_verdict(sign_in: SignIn, people: People, annotator):
    entries = make_entries(people, 3)
    page = sign_in(annotator)
    page.goto("/replay/")
    expect_entry(page, entries[0])
    label_entry(
        entry=entries[0], user=make_user(Role.ANNOTATOR, team=people.team, name="bert"), verdict="gold"
    )
    page.keyboard.press("r")
    expect(page.locator("[data-problem]")).to_contain_text("gold by now, set by bert")
    expect_entry(page, entries[0])
    expect(page.locator("[data-verdict-now]")).to_have_text("Gold")
    expect_verdicts(entries, ["gold", "inbox", "inbox"], page)


def test_a_label_that_could_not_be_stored_is_rolled_back_and_said(sign_in: SignIn, people: People, annotator):
    entries = make_entries(people, 3)
    page = sign_in(annotator)
    page.goto("/replay/")
    expect_entry(page, entries[0])
    page.context.set_offline(True)
    page.keyboard.press("a")
    expect(page.locator("[data-problem]")).to_contain_text("was not stored")
    expect_entry(page, entries[0])
    expect(page.locator("[data-verdict-now]")).to_have_text("Inbox")
    expect(page.locator("[data-count=accepted]")).to_have_text("0")
    page.context.set_offline(False)
    page.keyboard.press("a")
    expect_entry(page, entries[1])
    expect_verdicts(entries, ["accepted", "inbox", "inbox"], page)


def test_after_a_reload_undo_still_brings_the_last_label_back(sign_in: SignIn, people: People, annotator):
    entries = make_entries(people, 3)
    page = sign_in(annotator)
    page.goto("/replay/")
    expect_entry(page, entries[0])
    page.keyboard.press("r")
    expect_entry(page, entries[1])
    expect_verdicts(entries, ["rejected", "inbox", "inbox"], page)
    page.goto("/replay/")
    expect_entry(page, entries[1])
    page.keyboard.press("z")
    expect_entry(page, entries[0])
    expect_verdicts(entries, ["inbox"] * 3, page)


def test_a_queue_longer_than_one_page_goes_on(sign_in: SignIn, people: People, annotator):
    entries = [make_replay_entry(team=people.team, turns=1) for _ in range(54)][::-1]
    page = sign_in(annotator)
    page.goto("/replay/")
    expect(page.locator(".queue-row")).to_have_count(50)
    for _ in range(34):
        page.keyboard.press("s")
    expect(page.locator(".queue-row")).to_have_count(54)
    for _ in range(19):
        page.keyboard.press("s")
    expect(page.locator(".queue-row[aria-selected=true]")).to_have_attribute(
        "data-entry", str(entries[53].pk)
    )
    page.keyboard.press("s")
    expect(page.locator("[data-done]")).to_be_visible()


def test_a_viewer_may_look_but_keys_label_nothing(sign_in: SignIn, people: People):
    entries = make_entries(people, 2)
    page = sign_in(people.viewer)
    page.goto("/replay/")
    expect_entry(page, entries[0])
    page.keyboard.press("a")
    page.keyboard.press("k")
    expect(page.locator("[data-place]")).to_have_text("Turn 1 of 2")
    page.keyboard.press("j")
    expect(page.get_by_text("labelling needs the role annotator")).to_be_visible()
    expect_entry(page, entries[0])
    expect_verdicts(entries, ["inbox", "inbox"], page)


def test_everything_in_the_filter_is_labelled_at_once_and_taken_back(
    sign_in: SignIn, people: People, annotator
):
    entries = make_entries(people, 4)
    page = sign_in(annotator)
    page.goto("/replay/")
    page.get_by_role("button", name="Label all").click()
    page.get_by_role("button", name="Reject all").click()
    expect(page.get_by_text("4 entries marked rejected")).to_be_visible()
    expect_verdicts(entries, ["rejected"] * 4, page)
    page.goto("/replay/?verdict=rejected")
    expect(page.locator(".queue-row")).to_have_count(4)
    with page.expect_navigation():
        page.keyboard.press("z")
    expect_verdicts(entries, ["inbox"] * 4, page)


def test_a_success_that_arrives_is_announced_and_fills_an_empty_inbox(
    sign_in: SignIn, people: People, annotator
):
    page = sign_in(annotator)
    page.goto("/replay/")
    expect(page.get_by_text("The inbox is empty")).to_be_visible()
    first = arrive(people)
    expect_entry(page, first)
    second = arrive(people)
    expect(page.locator("[data-arrivals]")).to_have_text("1 new")
    expect(page.locator("[data-count=inbox]")).to_have_text("2")
    expect_entry(page, first)
    page.locator("[data-arrivals]").click()
    expect_entry(page, second)


def arrive(people: People) -> ReplayEntry:
    """A successful trajectory, offered as a worker does it."""
    trajectory = make_trajectory(team=people.team, turns=0)
    trajectory.last_frame = store(people.team, first_desk_screens.menu_screen(trajectory.pk % 8))
    trajectory.save()
    make_turn(trajectory, 0, frame=trajectory.last_frame, is_last=True)
    entry = offer_to_inbox(trajectory=trajectory)
    assert entry is not None
    return entry


def test_counts_of_a_bulk_label_follow_labels_and_arrivals(sign_in: SignIn, people: People):
    make_entries(people, 3)
    page = sign_in(people.operator)
    page.goto("/replay/")
    numbers = page.locator("[data-bulk-number]")
    expect(numbers.first).to_have_text("3")
    page.keyboard.press("a")
    expect(page.locator("[data-count=inbox]")).to_have_text("2")
    expect(numbers.first).to_have_text("2")
    offer_to_inbox(trajectory=make_trajectory(team=people.team, turns=2, reward=1.0))
    expect(page.locator("[data-count=inbox]")).to_have_text("3")
    expect(page.locator("[data-count=all]")).to_have_text("4")
    page.get_by_role("button", name="Label all 3").click()
    page.get_by_role("button", name="Reject all").click()
    expect(page.get_by_text("3 entries marked rejected")).to_be_visible()
    expect(page.locator("[data-count=rejected]")).to_have_text("3")
