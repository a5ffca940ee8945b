"""What is said of a task's text while people type, and at which line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.hostile_values import json_values
from webapp.tasks_library.task_text import read_task, text_of

GOOD = {
    "id": "note/one",
    "instruction": "Write a note.",
    "config": [{"type": "launch", "parameters": {"command": ["xterm"]}}],
    "evaluator": {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": "cat /tmp/x"},
        "expected": {"type": "rule", "rules": {"expected": "hi"}},
    },
    "oracle": {"actions": [{"kind": "terminate", "status": "success"}]},
    "milestones": [
        {
            "name": "opened",
            "evaluator": {
                "func": "exact_match",
                "result": {"type": "vm_file", "path": "/tmp/opened"},
                "expected": {"type": "inline", "content": "yes"},
            },
        }
    ],
}


def written(indent: int | str = 2, **changes) -> str:
    return json.dumps({**GOOD, **changes}, indent=indent)


def test_a_complete_task_is_read_and_written_back():
    reading = read_task(written())
    assert reading.problems == []
    assert read_task(text_of(reading.task.model_dump(mode="json"))).task == reading.task


@pytest.mark.parametrize(
    ("changes", "path", "marked", "problem"),
    [
        ({"id": ""}, "id", '"id"', "is missing"),
        ({"split": "exam"}, "split", '"split"', "must be 'train' or 'heldout'"),
        ({"config": [1]}, "config.0", "1", "valid dictionary"),
        (
            {"milestones": [{"name": "", "evaluator": {}}]},
            "milestones.0.name",
            '"name"',
            "at least 1 character",
        ),
        (
            {"milestones": [{"name": "a", "evaluator": {**GOOD["evaluator"], "wait_s": 1}}]},
            "milestones.0.evaluator.wait_s",
            '"wait_s"',
            "a milestone is looked at",
        ),
        ({"level": 0}, "level", '"level"', "must be from 1 to 1000"),
        ({"screen": [10, 20]}, "screen", '"screen"', "each from 200"),
        ({"instruction": " "}, "instruction", '"instruction"', "is empty"),
        ({"oracle": {"actions": [{"kind": "jump"}]}}, "oracle.actions.0.kind", '"kind"', "must be"),
        (
            {"config": [{"type": "download", "parameters": {"files": []}}]},
            "config.0",
            "{",
            "setup verb download is not supported (desktops have no network)",
        ),
        (
            {"evaluator": {**GOOD["evaluator"], "func": ["exact_match", "compare_pdfs"]}},
            "evaluator.result",
            '"result"',
            "evaluator.result must have one entry per func",
        ),
        (
            {"evaluator": {**GOOD["evaluator"], "result": {"type": "open_tabs_info"}}},
            "evaluator.result.0",
            '"result"',
            "getter open_tabs_info is not supported",
        ),
        ({"evalator": {}}, "evalator", '"evalator"', "is no key of a task"),
    ],
)
@pytest.mark.parametrize("indent", [2, "\t"])
def test_every_problem_is_named_at_its_line(indent, changes, path, marked, problem):
    text = written(indent, **changes)
    found = next(one for one in read_task(text).problems if problem in one.text)
    assert found.path == path
    assert marked in text.splitlines()[found.line - 1]


def test_a_missing_evaluator_is_no_refusal_but_said():
    reading = read_task(json.dumps({"id": "a", "instruction": "Go."}))
    assert [(one.text, one.is_refusal) for one in reading.problems] == [
        ("unsupported on Deskhand's desktops: evaluator.func is missing", False)
    ]
    assert not reading.is_refused


def test_text_that_is_no_json_is_refused_at_its_line():
    (problem,) = read_task('{\n  "id": "a",\n  oops\n}').problems
    assert (problem.line, problem.is_refusal) == (3, True)
    assert "Expecting property name" in problem.text


@pytest.mark.parametrize("text", ["[]", '{"id": 1e999}', "[" * 9999, '{"id": "\\u0000", "instruction": "x"}'])
def test_what_no_database_holds_is_refused(text):
    assert read_task(text).is_refused


def test_a_number_that_no_database_holds_is_named():
    (problem,) = read_task(written(max_turns=10**30)).problems
    assert (problem.path, problem.text) == ("max_turns", f"larger than {2**63 - 1}")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*GOOD, "split", "level", "screen"], json_values)))
def test_no_value_breaks_the_reader(values):
    read_task(json.dumps({**GOOD, **values}))
    read_task(json.dumps(values))
