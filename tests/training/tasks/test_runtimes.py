"""Which tasks can run depends on the runtime: our evaluators, or OSWorld's on some machine."""

import pytest

from training.contracts.config import DesktopConfig
from training.contracts.types import Task
from training.tasks.sets.first_desk import generate
from training.tasks.supported_by.runtimes import TaskRuntime, reason_unsupported, runtime_of

OURS = DesktopConfig.model_validate({"provider": "osworld"})
THEIRS = DesktopConfig.model_validate({"provider": "osworld", "osworld": {"machines": "docker"}})


def task(func="exact_match", result="vm_command_line", *config: dict, **evaluator) -> Task:
    file = {"path": "/x", "dest": "x"} if result == "vm_file" else {"command": "true"}
    getter = {"type": result, **file}
    rule = {"type": "rule", "rules": {"expected": ""}}
    evaluator = {"func": func, "result": getter, "expected": rule, **evaluator}
    return Task(task_id="t", instruction="Go.", config=config, evaluator=evaluator)


def step(verb: str, **parameters) -> dict:
    return {"type": verb, "parameters": parameters}


def test_the_desktops_of_an_experiment_name_its_runtime():
    assert runtime_of(DesktopConfig()) is TaskRuntime.OWN
    assert runtime_of(OURS) is TaskRuntime.OSWORLD_HERE
    assert runtime_of(THEIRS) is TaskRuntime.OSWORLD


@pytest.mark.parametrize(
    ("wanted", "own", "here", "anywhere"),
    [
        (task(), "", "", ""),
        (task("compare_docx_files", "vm_file"), "metric compare_docx_files is not supported", "", ""),
        (task("is_expected_tabs", "open_tabs_info"), "not supported", "no Google Chrome", ""),
        (task("exact_match", "rule", step("download", files=[])), "no network", "", ""),
        (
            task("exact_match", "rule", step("launch", command=["vlc"])),
            "vlc is not installed",
            "vlc is not",
            "",
        ),
        (task("no_such_metric"), "not supported", "has no such function", "has no such function"),
        (
            task("exact_match", "rule", step("tidy_desktop")),
            "not supported",
            "raises NotImplementedError",
            "raises NotImplementedError",
        ),
    ],
)
def test_each_runtime_says_what_it_lacks(wanted, own, here, anywhere):
    for runtime, part in (
        (TaskRuntime.OWN, own),
        (TaskRuntime.OSWORLD_HERE, here),
        (TaskRuntime.OSWORLD, anywhere),
    ):
        reason = reason_unsupported(runtime, wanted)
        assert part in reason
        assert bool(reason) == bool(part), reason


def test_tasks_with_verbs_of_our_own_do_not_run_with_osworld():
    panel = next(task for task in generate() if task.family == "menu")
    assert reason_unsupported(TaskRuntime.OWN, panel) == ""
    assert "panel: DesktopEnv 1.0.2 has no such function" in reason_unsupported(TaskRuntime.OSWORLD, panel)
