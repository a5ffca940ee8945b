"""Every spelling of a line that files of this kind have, and that what comes in leaves as it came."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from testing.factories import (
    make_task,
    make_team,
    make_user,
)
from testing.replay_imports import check_lines, import_lines
from testing.replay_lines import (
    SAID,
    URL,
    USER,
    VARIANTS,
    shown,
)
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.replay.formats.slime_export import export_line, export_record
from webapp.replay.models import ReplayEntry
from webapp.replay.services.demonstrated_tasks import demonstrations_of
from webapp.replay.services.imports import approve_import, request_import

pytestmark = pytest.mark.django_db


CALLED = {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [12, 40]}}
CALLS = {
    "tool_calls": {"tool_calls": [{"id": "1", "type": "function", "function": CALLED}]},
    "tool_calls with arguments as text": {
        "tool_calls": [
            {"type": "function", "function": {**CALLED, "arguments": json.dumps(CALLED["arguments"])}}
        ]
    },
    "tool_calls without function": {"tool_calls": [CALLED]},
    "tool_calls as JSON text": {"tool_calls": json.dumps([{"function": CALLED}])},
    "function_call": {"function_call": CALLED},
}
for name, call in CALLS.items():
    for content in ("", None, "I click."):
        said = {"role": "assistant", "content": content, **call}
        VARIANTS[f"{name}, content {content!r}"] = {"messages": [USER, said], "images": [URL]}
CLICK = {"kind": "click", "x": 12, "y": 40}


def test_there_are_all_thirty_two():
    assert len(VARIANTS) == 32


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_comes_in_and_leaves_as_it_came(name):
    task, team = make_task(), make_team()
    line = {**VARIANTS[name], "task_id": task.task_id, "reward": 1.0, "source_dataset": "other", "extra": [1]}
    (entry,) = import_lines(
        lines=[json.dumps(line)], team=team, task_set=task.task_set, user=make_user(team=team)
    )
    assert all(turn.action == CLICK for turn in entry.trajectory.turns.all())
    has_screen = "text only" not in name
    assert [bool(turn.frame) for turn in entry.trajectory.turns.all()] == [has_screen] * len(
        entry.trajectory.turns.all()
    )
    out = export_record(entry)
    raw = line.get("messages") or line["conversations"]
    raw = json.loads(raw) if isinstance(raw, str) else raw
    assert texts(out["messages"]) == texts(raw)
    assert (out["task_id"], out["reward"], out["source_dataset"]) == (task.task_id, 1.0, "other")
    assert out["extra"] == [1]
    again = import_lines(
        lines=[export_line(entry)],
        team=make_team(),
        task_set=task.task_set,
        user=make_user(),
        keep_labels=True,
    )
    second = export_record(again[0])
    assert {**second, "metadata": None} == {**out, "metadata": None}
    assert shown(again[0]) == shown(entry)


def texts(messages: list[dict]) -> list:
    """What was said, by whom; without pictures."""
    found = []
    for message in messages:
        content = message.get("content", message.get("value"))
        if isinstance(content, list):
            content = [part.get("text", "<image>") for part in content]
        found.append((message.get("role") or message.get("from"), content, message.get("step_loss_mask")))
    return found


def test_good_lines_come_in_and_bad_ones_are_listed_with_their_number_and_reason():
    task, team = make_task(), make_team()
    good = {**VARIANTS["data URLs"], "task_id": task.task_id, "reward": 1.0}
    bad = {**good, "messages": [USER, {"role": "assistant", "content": "hello"}]}
    foreign = {**good, "task_id": "nowhere"}
    lines = [json.dumps(good), "{", json.dumps(bad), json.dumps(foreign)]
    user = make_user(team=team)
    job = check_lines(lines=lines, team=team, task_set=task.task_set, user=user)
    assert (job.num_new, job.num_bad) == (1, 3)
    assert [number for number, _ in job.problems] == [2, 3, 4]
    assert "holds no tool call" in job.problems[1][1]
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    assert ReplayEntry.objects.filter(team=team).count() == 1


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"tool_calls": [7]}, "messages[1].tool_calls[0]: no function with a name and arguments"),
        ({"tool_calls": [{"function": {"arguments": {}}}]}, "messages[1].tool_calls[0]: no function"),
        (
            {"tool_calls": [{"function": {"name": "x", "arguments": "{"}}]},
            "[0].arguments: not JSON",
        ),
        ({"tool_calls": [{"function": {"name": "x", "arguments": [1]}}]}, "[0].arguments: not an object"),
        (
            {"tool_calls": [{"function": CALLED}, {"function": CALLED}]},
            "tool_calls: 2 calls; one action per turn",
        ),
        ({"function_call": {"name": "x"}}, "messages[1].function_call.arguments: not an object"),
        ({"tool_calls": []}, "messages[1].content: neither text nor a list"),
    ],
)
def test_a_call_that_cannot_be_read_is_named(call, problem):
    task, team = make_task(), make_team()
    said = {"role": "assistant", "content": None, **call}
    line = {"messages": [USER, said], "images": [URL], "task_id": task.task_id, "reward": 1.0}
    user = make_user(team=team)
    job = check_lines(lines=[json.dumps(line)], team=team, task_set=task.task_set, user=user)
    assert problem in job.problems[0][1]


GOOD = {"messages": [USER, SAID], "images": [URL], "reward": 1.0}
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


@pytest.mark.parametrize("chunk", [7, 2**20])
@pytest.mark.parametrize(
    ("text", "num_good", "bad"),
    [
        (f"{MARK}<1>", 1, []),
        (f"{MARK}<1>\r\n<2>\r\n", 2, []),
        ("<1>\r\n<2>", 2, []),
        ("<1>\r<2>\r", 2, []),
        ("<1>\n\n\r\n{oops\r<2>", 2, [4]),
        ("<1>\n{oops\n", 1, [2]),
        (f"<1>\n{MARK}<2>\n", 2, []),
        ("<separated>\n{oops\n<2>", 2, [2]),
        ('\n\n<1>\n[]\n"x"\n7\nnull\n', 1, [4, 5, 6, 7]),
    ],
)
def test_lines_are_counted_as_an_editor_counts_them(text, num_good, bad, chunk, monkeypatch):
    monkeypatch.setattr("webapp.replay.formats.lines.read_lines.READ_BYTES", chunk)
    task, team = make_task(), make_team()
    first = json.dumps({**GOOD, "task_id": task.task_id})
    lines = {"1": first, "2": first.replace("[12, 40]", "[13, 40]"), "separated": first}
    lines["separated"] = first.replace("Open the", "Open\N{LINE SEPARATOR}the\x85")
    for name, line in lines.items():
        text = text.replace(f"<{name}>", line)
    user = make_user(team=team)
    upload = SimpleUploadedFile("x.jsonl", text.encode())
    job = request_import(team=team, user=user, task_set=task.task_set, upload=upload)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.num_new, [number for number, _ in job.problems]) == (num_good, bad)
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_stored) == ("finished", num_good)


def test_unknown_tasks_come_in_as_demonstrations_only_when_asked():
    task, team = make_task(), make_team()
    user = make_user(team=team)
    line = {**VARIANTS["data URLs"], "reward": 1.0, "metadata": {"domain": "chrome"}}
    lines = [json.dumps({**line, "task_id": name}) for name in ("new-1", "new-1_chunk2", task.task_id)]
    upload = SimpleUploadedFile("x.jsonl", "\n".join(lines).encode())
    job = request_import(team=team, user=user, task_set=task.task_set, upload=upload, takes_unknown=True)
    kinds["import"].run(job.pk)
    name = demonstrations_of(team)
    assert not TaskRecord.objects.filter(task_set__name=name).exists()
    job.refresh_from_db()
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    made = TaskRecord.objects.get(task_set__name=name)
    assert made.task_set not in TaskSet.objects.of(make_team()), "another team's"
    assert (made.task_id, made.family, made.instruction) == ("new-1", "chrome", "Open the reports")
    assert (made.status, made.runs_on) == ("unsupported", "")
    found = ReplayEntry.objects.filter(team=team).values_list("trajectory__task", flat=True)
    assert sorted(found) == sorted([made.pk, task.pk])
