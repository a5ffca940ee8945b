"""One verdict for very many entries: seen to run at once, with the filter kept and counts that agree."""

from playwright.sync_api import Page, Route, expect

from testing.browser.people import People, SignIn
from testing.factories import make_group, make_replay_entry, make_task, make_trajectory, make_user
from webapp.accounts.models import Role
from webapp.replay.models import ReplayEntry
from webapp.trajectories.models import Trajectory

NUM_NOTES, NUM_MENUS = 1800, 2
PRESSED = """async (button) => {
    button.click();
    for (const _ of [1, 2, 3]) await new Promise(requestAnimationFrame);
    const busy = document.querySelector("#bulk [role=status]");
    return [busy.textContent, busy.checkVisibility(), button.disabled];
}"""
"""What is seen while the answer is not there; Playwright's own click and expectations would wait for it."""


def make_many(people: People, family: str, number: int) -> None:
    """Entries of one task, all but the newest without turns."""
    group = make_group(team=people.team, task=make_task(family=family))
    newest = make_trajectory(group=group, turns=2)
    values = {**Trajectory.objects.filter(pk=newest.pk).values().get(), "id": None}
    rows = Trajectory.objects.bulk_create(Trajectory(**values) for _ in range(number - 1))
    ReplayEntry.objects.bulk_create(
        ReplayEntry(team=people.team, trajectory=row, family=family) for row in rows
    )
    make_replay_entry(trajectory=newest)


def expect_counts(page: Page, **numbers: int) -> None:
    for verdict, number in numbers.items():
        expect(page.locator(f'[data-count="{verdict}"]')).to_have_text(f"{number:,}")


def test_a_bulk_label_is_seen_to_run_and_keeps_the_filter_and_the_counts(sign_in: SignIn, people: People):
    make_many(people, "menu", NUM_MENUS)
    make_many(people, "note", NUM_NOTES)
    page = sign_in(make_user(Role.ANNOTATOR, team=people.team))
    page.goto("/replay/?family=note")
    expect_counts(page, inbox=NUM_NOTES, rejected=0, all=NUM_NOTES)
    held: list[Route] = []
    page.route("**/replay/bulk/**", lambda route: held.append(route))
    page.get_by_role("button", name=f"Label all {NUM_NOTES:,}").click()
    reject = page.get_by_role("button", name="Reject all")
    words, is_seen, is_disabled = reject.evaluate(PRESSED)

    assert words.strip().startswith("Labelling; this page comes back")
    assert is_seen
    assert is_disabled, "a second answer is not taken"
    (request,) = held
    request.continue_()
    expect(page.get_by_text(f"{NUM_NOTES:,} entries marked rejected")).to_be_visible()
    assert page.url.endswith("/replay/?family=note")
    expect_counts(page, inbox=0, rejected=NUM_NOTES, all=NUM_NOTES)
    assert ReplayEntry.objects.filter(verdict="rejected", family="note").count() == NUM_NOTES
    page.goto("/replay/")
    expect_counts(page, inbox=NUM_MENUS, rejected=NUM_NOTES, all=NUM_NOTES + NUM_MENUS)
    expect(page.get_by_role("button", name=f"Label all {NUM_MENUS:,}")).to_be_visible()


def test_a_bulk_label_that_emptied_the_inbox_is_taken_back_by_its_key(sign_in: SignIn, people: People):
    make_many(people, "menu", NUM_MENUS)
    page = sign_in(make_user(Role.ANNOTATOR, team=people.team))
    page.goto("/replay/?family=menu")
    page.get_by_role("button", name=f"Label all {NUM_MENUS}").click()
    page.get_by_role("button", name="Accept all").click()
    expect(page.get_by_text("Press Z to undo")).to_be_visible()
    expect_counts(page, inbox=0, accepted=NUM_MENUS)
    page.get_by_role("button", name="Undo your last label").wait_for()
    page.keyboard.press("z")
    expect(page.get_by_text(f"{NUM_MENUS} labels undone")).to_be_visible()
    expect_counts(page, inbox=NUM_MENUS, accepted=0)
    assert page.url.endswith("/replay/?family=menu")
