"""An operator writes a task by form or JSON, uploads others, tries one by hand and sees every check."""

import json

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import LIMIT_S, EnvWorker, note_task, typed
from training.tasks.task_json import to_osworld
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Trajectory

SIZES = {"wide": (1280, 800), "phone": (390, 844)}
NOTE = to_osworld(note_task("blue hen")) | {"id": "mine/note"}


def open_page(sign_in: SignIn, people: People, size: str, path: str) -> Page:
    page = sign_in(people.operator)
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    page.goto(path)
    return page


def open_json(page: Page) -> None:
    """On a wide page it stands beside the form."""
    if (tab := page.get_by_role("tab", name="JSON")).is_visible():
        tab.click()


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("size", SIZES)
def test_a_task_is_written_edited_and_uploaded(sign_in: SignIn, people: People, size: str):
    page = open_page(sign_in, people, size, "/tasks/")
    page.get_by_role("link", name="New task").first.click()
    page.get_by_role("link", name="Write a task").click()
    expect(page.get_by_text("is missing").first).to_be_visible()  # the page's script fills the form at first
    page.get_by_label("Instruction").fill("Write blue hen.")
    page.get_by_label("Id", exact=True).fill("mine/note")
    page.get_by_label("Set-up, a list of steps").fill('[{"type": "download", "parameters": {"files": []}}]')
    page.get_by_label("Evaluator").fill(json.dumps(NOTE["evaluator"]))
    expect(page.get_by_text("setup verb download is not supported")).to_be_visible()
    page.get_by_label("Set-up, a list of steps").fill("[{")
    expect(page.get_by_role("alert").filter(has_text="Set-up, a list of steps is not valid")).to_be_visible()
    page.get_by_label("Set-up, a list of steps").fill("[]")
    expect(page.get_by_text("Runs on Deskhand desktops.")).to_be_visible()
    assert fits(page)
    open_json(page)
    text = page.get_by_label("Task as JSON")
    text.fill(text.input_value().replace('"split": "train"', '"split": "exam"'))
    page.get_by_role("button", name="Line ").first.click()
    assert "exam" in page.evaluate(
        "getSelection().toString() || document.activeElement.value.slice("
        "document.activeElement.selectionStart, document.activeElement.selectionEnd)"
    )
    text.fill(text.input_value().replace('"split": "exam"', '"split": "train"'))
    page.get_by_label("Task set").fill("mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Write blue hen.")
    assert fits(page)

    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Instruction")).to_have_value(
        "Write blue hen."
    )  # filled in by the page's script
    page.get_by_label("Instruction").fill("Write red hen.")
    expect(page.get_by_label("What changed")).to_contain_text('"instruction": "Write red hen."')
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_role("definition").filter(has_text="2 of 2, since revision 2")).to_be_visible()
    expect(page.get_by_role("heading", name="Changed since version 1")).to_be_visible()

    page.goto("/task-upload/?set=mine")
    leak = NOTE | {"id": "mine/copy", "instruction": "Write RED hen.", "split": "heldout"}
    files = [{"name": "copy.json", "mimeType": "application/json", "buffer": json.dumps(leak).encode()}]
    page.get_by_label("Drop a file here").set_input_files(files)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert").filter(has_text="is that of mine/note in split train")).to_be_visible()
    good = json.dumps(NOTE | {"id": "mine/other", "instruction": "Write green hen."}).encode()
    page.get_by_label("Drop a file here").set_input_files([files[0] | {"buffer": good}])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("1 added, 0 as another version")).to_be_visible()
    assert fits(page)


def test_broken_json_is_said_once_with_its_field_or_line(sign_in: SignIn, people: People):
    page = open_page(sign_in, people, "wide", "/task-editor/")
    checked = page.locator("section").filter(has=page.get_by_role("heading", name="Check"))
    good = checked.get_by_text("Runs on Deskhand desktops.")
    text = page.get_by_label("Task as JSON")
    text.fill(json.dumps(NOTE, indent=2))
    page.get_by_label("Task set").fill("mine")
    expect(good).to_be_visible()
    page.get_by_label("Evaluator").fill('{\n"func" 1}')
    expect(checked.get_by_role("alert")).to_contain_text("Evaluator is not valid JSON")
    expect(checked.get_by_role("alert")).to_contain_text("line 2")
    expect(good).to_be_hidden()
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Not tried yet")).to_be_visible()
    assert not TaskRecord.objects.exists(), "the text still has the evaluator of before"
    text.fill('{\n"id" 1}')
    expect(checked.get_by_role("button", name="Line 2")).to_be_visible()
    expect(checked.get_by_role("alert")).to_have_count(0)
    assert checked.inner_text().count("JSON") == 1
    text.fill(json.dumps(NOTE, indent=2))
    expect(good).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks/mine/*/")


@pytest.mark.desktop
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("size", SIZES)
def test_a_task_is_tried_by_hand_and_every_check_is_shown(
    sign_in: SignIn, people: People, env_worker: EnvWorker, size: str
):
    page = open_page(sign_in, people, size, "/task-editor/")
    open_json(page)
    page.get_by_label("Task as JSON").fill(json.dumps(NOTE, indent=2))
    page.get_by_label("Task set").fill("mine")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks/mine/*/")
    page.get_by_role("button", name="Try it").click()
    page.wait_for_url("**/desktop/")
    env_worker.start(Trajectory.objects.get(task=TaskRecord.objects.get()))
    expect(page.locator('[data-do="finish"]')).to_be_visible(timeout=LIMIT_S * 1000)
    typed(page, "blue cat")
    page.locator('[data-do="finish"]').click()
    checks = page.get_by_role("region", name="Evaluator's checks")
    expect(checks).to_contain_text("compare_text_file", timeout=LIMIT_S * 1000)
    expect(checks.get_by_role("definition").first).to_contain_text("blue hen")
    expect(page.get_by_text("Scored 0")).to_be_visible()
    assert fits(page)
    page.get_by_role("button", name="Try it again").click()
    page.wait_for_url("**/desktop/")
    expect(page.get_by_text("Scored 0")).to_have_count(0)
