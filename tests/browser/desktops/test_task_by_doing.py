"""A task is made by doing it at a real desktop, tried before it is saved, and its oracle solves it."""

import json

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import LIMIT_S, EnvWorker, typed, wait_for
from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.tasks_library.models import Draft
from webapp.trajectories.models import Trajectory

pytestmark = [pytest.mark.slow, pytest.mark.desktop, pytest.mark.django_db(transaction=True)]
LIMIT_MS = LIMIT_S * 1000


def open_new_desktop(page: Page, env_worker: EnvWorker) -> Trajectory:
    page.goto("/tasks/")
    page.get_by_role("link", name="New task").first.click()
    page.get_by_role("button", name="Open a desktop").click()
    page.wait_for_url("**/desktop/")
    trajectory = Trajectory.objects.get()
    env_worker.start(trajectory)
    expect(page.locator('#desktop[data-screen="control"]')).to_be_visible(timeout=LIMIT_MS)
    return trajectory


def run_verification(env_worker: EnvWorker) -> None:
    """What the dispatcher and the env workers would do."""
    wait_for(lambda: Trajectory.objects.filter(purpose=Purpose.VERIFICATION, status="queued").count() == 2)
    for trajectory in Trajectory.objects.filter(purpose=Purpose.VERIFICATION, status="queued"):
        env_worker.run_to_end(trajectory)


def test_a_task_is_made_by_doing_it_tried_saved_and_solved(
    sign_in: SignIn, people: People, env_worker: EnvWorker
):
    page = sign_in(people.operator)
    page.set_viewport_size({"width": 1280, "height": 800})
    trajectory = open_new_desktop(page, env_worker)

    panel = page.get_by_role("region", name="Make a task")
    panel.get_by_text("Put a file").click()
    panel.get_by_label("Path").fill("plan.txt")
    panel.get_by_label("Content").fill("first\n")
    panel.get_by_role("button", name="Put").click()
    expect(panel.get_by_role("listitem").filter(has_text="plan.txt")).to_be_visible()
    expect(page.locator('[data-do="finish"]')).to_be_hidden()
    panel.get_by_label("Open a program").fill("mousepad plan.txt")
    panel.get_by_role("button", name="Open", exact=True).click()
    expect(panel.get_by_role("listitem").filter(has_text="mousepad")).not_to_contain_text("under way")
    wait_for(lambda: env_worker.has_window("Mousepad"))
    panel.get_by_role("button", name="Start here").click()
    expect(panel.get_by_role("heading")).to_have_text("2. Do the task once", timeout=LIMIT_MS)

    typed(page, "blue hen ")
    page.keyboard.press("Control+s")
    wait_for(lambda: env_worker.file("~/plan.txt").startswith("blue hen first"))
    page.get_by_role("button", name="Done").click()
    page.wait_for_url("**/task-editor/?draft=*", timeout=LIMIT_MS)
    trajectory.refresh_from_db()
    assert (trajectory.score, trajectory.status) == (None, "cancelled"), "a draft is no try of a task"

    checks = page.get_by_role("group", name="What has changed")
    whole = checks.get_by_label("plan.txt holds exactly: “blue hen first”")
    expect(whole).to_be_checked()
    checks.get_by_label("plan.txt says: “blue hen first”").check()
    text = page.get_by_label("Task as JSON")
    page.get_by_label("Instruction").fill("Write blue hen before the first line of the plan and save it.")
    task = json.loads(text.input_value())
    assert [step["type"] for step in task["config"]] == ["upload_file", "launch", "place_window"]
    assert task["config"][1]["parameters"]["command"] == ["mousepad", "plan.txt"]
    assert task["evaluator"]["func"] == ["compare_text_file", "check_include_exclude"]
    assert [action["kind"] for action in task["oracle"]["actions"]] == ["type", "key", "terminate"]
    expect(page.get_by_text("Runs on Deskhand desktops.")).to_be_visible()

    page.get_by_role("button", name="Try it").click()
    run_verification(env_worker)
    expect(page.get_by_text("1 of 1 run scored 1")).to_be_visible(timeout=LIMIT_MS)
    expect(page.get_by_text("1 of 1 run scored 0")).to_be_visible(timeout=LIMIT_MS)
    assert not TaskSet.objects.listed(people.team).exists(), "a try saves nothing that people see"

    page.get_by_label("Task set").fill("mine")
    page.get_by_role("button", name="Save").click()
    oracle_shown = page.get_by_role("region", name="Oracle").get_by_role("listitem")
    expect(oracle_shown.first).to_contain_text("blue hen")
    saved = TaskRecord.objects.get(task_set__name="mine")
    page.get_by_role("button", name="Verify").click()
    wait_for(lambda: Trajectory.objects.filter(task=saved, source=Source.ORACLE).exists())
    oracle = Trajectory.objects.filter(task=saved, source=Source.ORACLE).first()
    env_worker.run_to_end(oracle)
    oracle.refresh_from_db()
    assert oracle.score == 1.0
    page.goto("/new-task/")
    expect(page.get_by_role("link", name=f"Proposal of trajectory {trajectory.pk}")).to_be_visible()
    assert Draft.objects.get().start_turn is not None
