"""What cannot run is marked with its reason; what is marked as supported has code behind it."""

import pytest

from training.contracts.milestone import Milestone
from training.contracts.types import Task
from training.tasks.supported_by import deskhand
from training.tasks.supported_by.deskhand import unsupported_reason
from workers.tasks.evaluators.getters import GETTERS
from workers.tasks.evaluators.metrics import METRICS
from workers.tasks.setup_verbs import SETUP_VERBS

GOOD = {
    "func": "exact_match",
    "result": {"type": "vm_command_line", "command": "cat x", "shell": True},
    "expected": {"type": "rule", "rules": {"expected": "x"}},
}


def reason(config=(), evaluator=None) -> str:
    return unsupported_reason(
        Task(
            task_id="t",
            instruction="",
            config=tuple(config),
            evaluator=GOOD if evaluator is None else evaluator,
        )
    )


def step(verb: str, **parameters) -> dict:
    return {"type": verb, "parameters": parameters}


def test_the_table_and_the_code_name_the_same_verbs_getters_and_metrics():
    assert set(deskhand.SETUP_VERBS) == set(SETUP_VERBS)
    assert set(deskhand.GETTERS) == set(GETTERS)
    assert set(deskhand.METRICS) == set(METRICS)


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [step("launch", command=["mousepad", "x.txt"]), step("sleep", seconds=1)],
        [step("execute", command="ls | wc", shell=True, until={"returncode": 0})],
        [step("upload_file", files=[{"path": "a", "content": "x"}])],
        [step("activate_window", window_name="x", strict=True, by_class=False)],
    ],
)
def test_known_steps_are_supported(steps):
    assert reason(steps) == ""


@pytest.mark.parametrize(
    ("steps", "part"),
    [
        ([step("download", files=[])], "setup verb download is not supported (desktops have no network)"),
        ([step("chrome_open_tabs", urls_to_open=[])], "no browser is installed"),
        ([step("teleport")], "config[0]: setup verb teleport is not supported"),
        ([step("sleep")], "setup verb sleep needs seconds"),
        ([step("sleep", seconds=1, minutes=2)], "setup verb sleep does not support minutes"),
        ([step("upload_file", files=[{"local_path": "a", "path": "b"}])], "needs inline content"),
        ([step("upload_file", files=[{"content": "a"}])], "every upload needs a path"),
        ([step("launch", command=["google-chrome", "--x"])], "google-chrome is not installed"),
        ([step("launch", command="/usr/bin/vlc -f")], "vlc is not installed"),
        ([step("launch", command=[])], "command must be"),
        ([step("execute", command="x", until={"weather": 1})], "until may hold"),
        ([{"type": "launch", "parameters": [1]}], "must be an object"),
    ],
)
def test_an_unsupported_step_gives_the_reason(steps, part):
    assert part in reason(steps)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"func": "compare_table"}, "metric compare_table is not supported"),
        ({"func": None}, "evaluator.func is missing"),
        ({"func": ""}, "evaluator.func is missing"),
        ({"result": {"type": "cloud_file", "path": "x", "dest": "y"}}, "getter cloud_file is not supported"),
        ({"result": {"type": "vm_file"}}, "getter vm_file needs path"),
        (
            {"result": {"type": "vm_file", "path": "x", "multi": True}},
            "getter vm_file does not support multi",
        ),
        ({"result": None}, "evaluator[0].result must be an object"),
        ({"options": {"ignore_case": True}}, "metric exact_match does not support ignore_case"),
        ({"conj": "xor"}, "conj must be and, or or mean"),
        ({"func": ["exact_match", "exact_match"]}, "evaluator.result must have one entry per func"),
        ({"postconfig": [step("download", files=[])]}, "evaluator.postconfig[0]: setup verb download"),
        ({"postconfig": ["launch"]}, "evaluator.postconfig[0] must be an object"),
        ({"postconfig": "launch"}, "evaluator.postconfig must be a list of steps"),
        ({"magic": 1}, "evaluator.magic is not supported"),
    ],
)
def test_an_unsupported_evaluator_gives_the_reason(change, part):
    assert part in reason(evaluator={**GOOD, **change})


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, ""),
        ({"func": "compare_table"}, "milestones[0].evaluator[0]: metric compare_table is not supported"),
        ({"wait_s": 1}, "milestones[0].evaluator.wait_s: a milestone is looked at"),
        ({"postconfig": []}, "milestones[0].evaluator.postconfig: a milestone is looked at"),
        (
            {"result": {"type": "vm_command_line", "command": "ls"}},
            "milestones[0].evaluator: vm_command_line runs a program beside the agent's",
        ),
        ({"func": "infeasible"}, "milestones[0].evaluator.func: infeasible is said at the end"),
    ],
)
def test_milestones_may_only_look(changes, part):
    looking = {**GOOD, "result": {"type": "vm_file", "path": "/tmp/x"}, **changes}
    one = Milestone(name="one", evaluator=looking)
    task = Task(task_id="t", instruction="i", evaluator=GOOD, milestones=(one,))
    found = unsupported_reason(task)
    assert found.startswith(part) if part else found == ""
    twice = task.model_copy(update={"milestones": (one, one)})
    assert "milestones[1].name: one is the name of another one" in unsupported_reason(twice)


def test_an_infeasible_task_needs_no_getters():
    assert reason(evaluator={"func": "infeasible"}) == ""


def test_lists_of_metrics_are_supported():
    lists = {key: [value, value] for key, value in GOOD.items()}
    assert reason(evaluator={**lists, "conj": "or"}) == ""
