"""A task is proposed from what a person arranged and did: set-up, oracle and checks to choose from."""

import json

import pytest
from django.test import Client

from testing.factories import make_turn
from testing.page_text import page_text
from training.contracts.action import ActionKind
from training.contracts.types import Action, Purpose, Source, Task
from training.tasks.supported_by.deskhand import METRICS, SETUP_VERBS, task_problems
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.screens.models import Control
from webapp.tasks_library.examples import ACTIONS, CHECKS, SET_UP, examples
from webapp.tasks_library.models import Draft
from webapp.tasks_library.proposed.checks import Check, checks
from webapp.tasks_library.proposed.set_up import set_up, unknown_files
from webapp.tasks_library.proposed.task import propose
from webapp.tasks_library.services import drafts
from webapp.trajectories.models import Trajectory

HOME = "/home/user"


def state(files: dict | None = None, windows: tuple = (), folders: tuple = ()) -> dict:
    """`files`: path below HOME -> text, or other keys of its entry."""
    entries = [
        {"path": f"{HOME}/{path}", "stamp": "1", "bytes": 5}
        | (held if isinstance(held, dict) else {"text": held})
        for path, held in (files or {}).items()
    ]
    return {
        "home": HOME,
        "programs": ["mousepad"],
        "files": entries,
        "folders": [f"{HOME}/{folder}" for folder in folders],
        "windows": list(windows),
    }


def window(title: str, program: str = "mousepad", **values) -> dict:
    place = {"x": 10, "y": 30, "width": 400, "height": 200}
    known = {"title": title, "window_class": f"{program}.{program.title()}", "active": True, "pid": title}
    return known | place | {"program": program, "command": [f"/usr/bin/{program}", "a.txt"]} | values


def problems(*found: Check, config: tuple = ()) -> list[str]:
    """Of a task with these checks."""
    columns = {key: [getattr(check, key) for check in found] for key in ("result", "expected", "options")}
    evaluator = {"func": [check.func for check in found], **columns} if found else {"func": "infeasible"}
    return task_problems(Task(task_id="t", instruction="i", config=config, evaluator=evaluator))


def test_set_up_is_files_programs_and_windows_as_they_stood():
    start = state(
        {"plan.txt": "first\n", "in/pic.bin": {"base64": "AAE="}, ".config/mousepad.conf": "a=1"},
        (window("plan.txt - Mousepad"), window("xterm", "xterm", active=False, command=["xterm"])),
        ("in", "empty", ".config"),
    )
    launch = {"type": "launch", "parameters": {"command": ["mousepad", "plan.txt"]}}
    steps = set_up(state(), start, [launch])
    assert steps == [
        {"type": "execute", "parameters": {"command": ["mkdir", "-p", f"{HOME}/empty"]}},
        {
            "type": "upload_file",
            "parameters": {
                "files": [
                    {"path": f"{HOME}/plan.txt", "content": "first\n"},
                    {"path": f"{HOME}/in/pic.bin", "content_base64": "AAE="},
                ]
            },
        },
        launch,
        {
            "type": "place_window",
            "parameters": {"window_name": "Mousepad", "x": 10, "y": 30, "width": 400, "height": 200},
        },
        {"type": "launch", "parameters": {"command": ["xterm"]}},
        {
            "type": "place_window",
            "parameters": {"window_name": "Xterm", "x": 10, "y": 30, "width": 400, "height": 200},
        },
        {"type": "activate_window", "parameters": {"window_name": "Mousepad"}},
    ]
    assert problems(config=tuple(steps)) == []


def test_two_windows_of_one_program_are_named_by_their_titles_and_begun_once():
    windows = (window("one - Mousepad", pid="7"), window("*two - Mousepad", pid="7", active=False))
    steps = set_up(state(), state(windows=windows), [])
    assert [step["type"] for step in steps] == ["launch", "place_window", "place_window", "activate_window"]
    names = [step["parameters"]["window_name"] for step in steps[1:]]
    assert names == ["one - Mousepad", "two - Mousepad", "one - Mousepad"]


def test_a_file_that_is_too_large_for_a_task_is_named():
    start = state({"film.mp4": {"bytes": 90_000_000}})
    assert unknown_files(state(), start) == [f"{HOME}/film.mp4"]
    assert set_up(state(), start, []) == []


LETTER = {"paragraphs": [{"text": "Dear hen", "style": "Title"}], "num_paragraphs": 1}
CHANGES = {
    "a file with new words": (
        state({"a.txt": "one\ntwo\n"}),
        state({"a.txt": "one\nthree\n"}),
        ["compare_text_file"],
        ["check_include_exclude", "check_include_exclude"],
    ),
    "a new file": (
        state(),
        state({"b.txt": "x"}),
        ["compare_text_file"],
        ["check_include_exclude", "file_exists"],
    ),
    "a moved file": (
        state({"old.txt": "x"}),
        state({"new.txt": "x"}),
        ["compare_text_file", "file_exists", "exact_match"],
        ["check_include_exclude"],
    ),
    "a document": (
        state({"l.odt": {"base64": "AA==", "document": None}}),
        state({"l.odt": {"base64": "AB==", "document": LETTER}}),
        ["check_json"],
        ["check_json", "check_json"],
    ),
    "a folder": (state(), state(folders=("trips",)), ["file_exists"], []),
    "a setting": (
        state({".config/app.conf": "theme=light\n"}),
        state({".config/app.conf": "theme=dark\nseen=1\n"}),
        ["setting_value"],
        ["setting_value"],
    ),
    "a window": (
        state(),
        state(windows=(window("Calculator", "galculator"),)),
        ["window_open"],
        ["process_running"],
    ),
    "a page": (
        state(windows=(window("Start - Chromium", "chromium"),)),
        state(windows=(window("Weather - Chromium", "chromium"),)),
        ["window_open"],
        ["exact_match"],
    ),
    "nothing": (state({"a.txt": "x"}), state({"a.txt": "x"}), [], []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_checks_follow_from_what_changed_and_our_desktops_can_run_them(name):
    start, end, chosen, others = CHANGES[name]
    found = checks(start, end)
    assert [check.func for check in found if check.is_chosen] == chosen
    assert [check.func for check in found if not check.is_chosen] == others
    assert not found or problems(*found) == []


def test_a_page_is_named_without_its_browser():
    start, end, *_ = CHANGES["a page"]
    (page,) = [check for check in checks(start, end) if check.kind == "page"]
    assert page.expected == {"type": "rule", "rules": {"title": "Weather"}}


def test_every_verb_metric_and_action_has_an_example_that_is_valid():
    assert SET_UP.keys() == SETUP_VERBS.keys()
    assert CHECKS.keys() == METRICS.keys()
    assert ACTIONS.keys() == {kind.value for kind in ActionKind}
    shown = examples()
    for action in shown["oracle"].values():
        Action.model_validate(action)
    for check in shown["evaluator"].values():
        assert task_problems(Task(task_id="t", instruction="i", evaluator=check)) == []
    known = Task(task_id="t", instruction="i", config=tuple(shown["config"].values()), evaluator=check)
    assert task_problems(known) == []


# --- pages -------------------------------------------------------------------------------------------


def begun(client: Client) -> Draft:
    answer = client.post("/new-task/", {"desktop": "x11", "screen": "800x600"})
    draft = Draft.objects.get()
    assert answer.url == f"/trajectories/{draft.trajectory_id}/desktop/"
    return draft


def done(draft: Draft) -> None:
    """As the env worker reports it."""
    pk = draft.trajectory_id
    arranged = state({"plan.txt": "first\n"}, (window("plan.txt - Mousepad"),))
    drafts.note_draft_state(trajectory_id=pk, moment="clean", state=state(), num_turns=0)
    drafts.note_draft_state(trajectory_id=pk, moment="start", state=arranged, num_turns=1)
    for index, action in enumerate(({"kind": "click", "x": 1, "y": 2}, {"kind": "type", "text": "hen"})):
        make_turn(draft.trajectory, index, action=action, source=Source.HUMAN, completion=None)
    ended = state({"plan.txt": "hen first\n"}, (window("plan.txt - Mousepad"),))
    drafts.note_draft_state(trajectory_id=pk, moment="end", state=ended, num_turns=2)


@pytest.mark.django_db
def test_a_desktop_is_opened_arranged_and_proposed(client: Client, operator):
    draft = begun(client)
    trajectory = draft.trajectory
    assert Control.objects.get().user == operator
    assert trajectory.task.spec["screen"] == [800, 600]
    url = f"/trajectories/{trajectory.pk}/draft/step/"
    assert (
        client.post(url, {"do": "open", "command": 'mousepad "my plan.txt"'}).json()["draft"] == "arranging"
    )
    client.post(url, {"do": "file", "path": "plan.txt", "content": "first\n"})
    refused = client.post(url, {"do": "open", "command": '"'})
    assert refused.status_code == 400
    assert refused.json()["error"] == "command: cannot be read: No closing quotation."
    draft.refresh_from_db()
    assert draft.steps[0]["step"]["parameters"] == {"command": ["mousepad", "my plan.txt"]}
    drafts.note_draft_step(trajectory_id=trajectory.pk, index=1, error="no room")
    assert "no room" not in page_text(client.get(f"/trajectories/{trajectory.pk}/draft/"))  # no desktop yet
    drafts.note_draft_state(trajectory_id=trajectory.pk, moment="clean", state=state(), num_turns=0)
    assert "no room" in page_text(client.get(f"/trajectories/{trajectory.pk}/draft/"))
    client.post(url, {"do": "start"})
    late = client.post(url, {"do": "open", "command": "xterm"})
    assert "has begun" in late.json()["error"]


@pytest.mark.django_db
def test_done_before_start_here_is_refused_and_ends_nothing(client: Client, operator):
    begun(client)
    control = Control.objects.get()
    answer = client.post(f"/controls/{control.pk}/finish/", {"claim": "success"})
    assert (answer.status_code, "Start here" in answer.json()["error"]) == (409, True)
    control.refresh_from_db()
    assert control.is_active


@pytest.mark.django_db
def test_the_editor_begins_with_what_was_done_after_start_here(client: Client, operator):
    draft = begun(client)
    done(draft)
    draft.refresh_from_db()
    proposal = propose(draft)
    assert proposal.values["oracle"]["actions"] == [
        {"kind": "type", "text": "hen"},
        {"kind": "terminate", "status": "success"},
    ]
    page = client.get(f"/task-editor/?draft={draft.trajectory_id}")
    assert "plan.txt holds exactly: “hen first”" in page_text(page)
    assert json.loads(page.context["text"])["id"] == f"made/{draft.trajectory_id}"
    assert f"draft={draft.trajectory_id}" in client.get("/new-task/").content.decode()


@pytest.mark.django_db
def test_a_try_is_queued_and_nothing_is_saved_that_people_see(client: Client, operator):
    text = json.dumps({"id": "t", "instruction": "Do it.", **examples_task()})
    answer = client.post("/task-editor/try/", {"text": text})
    assert "2 runs under way" in page_text(answer)
    row = TaskRecord.objects.get(pk=answer["X-Tried"])
    assert Trajectory.objects.filter(task=row, purpose=Purpose.VERIFICATION).count() == 2
    assert "2 runs" in page_text(client.get("/task-editor/try/", {"tried": row.pk}))
    assert not TaskSet.objects.listed(row.task_set.team).exists()
    assert row.task_set.name not in page_text(client.get("/tasks/"))
    assert client.get(f"/tasks/{row.task_set.name}/{row.pk}/").status_code == 200, "no dead end"
    refused = client.post("/task-editor/try/", {"text": text.replace("compare_text_file", "magic")})
    assert (refused.status_code, b"magic" in refused.content) == (422, True)


def examples_task() -> dict:
    shown = examples()
    return {
        "evaluator": shown["evaluator"]["compare_text_file"],
        "oracle": {"actions": [shown["oracle"]["type"], shown["oracle"]["terminate"]]},
    }
