"""A file in the browser: checked first, its bad line named, what is new imported by a process of its own."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_replay_entry, make_trajectory, make_user
from tests.webapp.replay.test_transfer import line
from webapp.accounts.models import Role
from webapp.dispatcher.child_work import Children
from webapp.replay.formats.slime_export import export_line
from webapp.replay.imports import run
from webapp.replay.models import ReplayEntry, ReplayImport
from webapp.replay.services.inbox import offer_to_inbox


@pytest.fixture
def dispatch(child_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    """Starts the process for what waits, as the dispatcher does; also for a small file."""
    monkeypatch.setattr(run, "AT_ONCE_BYTES", 0)
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, child_environment[name])
    children = Children()
    yield children.go_on
    children.stop()


def dispatch_until(status: str, dispatch: Callable[[], None]) -> None:
    """A process of its own takes its time on a busy machine."""
    while ReplayImport.objects.get().status != status:
        dispatch()
        time.sleep(0.1)


def count(page: Page, name: str):
    return page.locator(f"[data-count={name}]")


def test_a_file_is_checked_first_and_then_imported(sign_in: SignIn, people: People, dispatch, tmp_path):
    own = offer_to_inbox(trajectory=make_trajectory(team=people.team, turns=2))
    task = own.trajectory.task
    lines = [export_line(own), line(task), line(task, reward="high")]
    file = tmp_path / "mixed.jsonl"
    file.write_text("\n".join(lines))

    page = sign_in(make_user(Role.ANNOTATOR, team=people.team))
    page.goto("/replay/transfer/")
    page.get_by_label("File (.jsonl, ").set_input_files(file)
    page.get_by_role("button", name="Check the file").click()
    expect(page.get_by_role("heading", name="Import of mixed.jsonl")).to_be_visible()
    expect(page.locator("[data-part=import]")).to_contain_text("Queued")

    dispatch_until("checked", dispatch)
    start = page.get_by_role("button", name="Import 1 new entry, leave out 1 bad line")
    expect(start).to_be_visible()
    assert ReplayEntry.objects.count() == 1, "a check stores nothing"
    expect(count(page, "known")).to_have_text("1")
    expect(page.locator(".import-problems")).to_contain_text("reward: not a number: high")
    expect(page.get_by_role("link", name=f"Entry {own.pk}")).to_be_visible()

    start.click()
    expect(page.locator("[data-part=import]")).to_contain_text("Approved")
    dispatch_until("finished", dispatch)
    expect(count(page, "stored")).to_have_text("1")
    expect(page.get_by_role("link", name="Open the replay buffer")).to_be_visible()


def test_a_waiting_import_is_cancelled(sign_in: SignIn, people: People, tmp_path):
    task = make_replay_entry(team=people.team).trajectory.task
    file = tmp_path / "one.jsonl"
    file.write_text(line(task))
    page = sign_in(make_user(Role.ANNOTATOR, team=people.team))
    page.goto("/replay/transfer/")
    page.get_by_label("File (.jsonl, ").set_input_files(file)
    page.get_by_role("button", name="Check the file").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-part=import]")).to_contain_text("Cancelled")
    page.goto("/replay/transfer/")
    expect(page.get_by_role("row", name="one.jsonl")).to_contain_text("Cancelled")
