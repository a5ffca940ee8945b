"""Which tasks can run depends on the runtime: our evaluators, or OSWorld's on some machine."""

import pytest

from training.content.task_sets.first_desk import generate
from training.content.task_sets.windows_keyboard import generate as generate_windows_keyboard
from training.contracts.config import DesktopConfig
from training.contracts.types import Task
from training.tasks.supported_by.operating_system import UNSAID_RUNS_ON
from training.tasks.supported_by.runtimes import (
    WHERE,
    TaskRuntime,
    grouped_reasons,
    reason_unsupported,
    runtime_of,
)

OURS = DesktopConfig.model_validate({"provider": "osworld"})
OFFICE = DesktopConfig.model_validate(
    {"provider": "osworld", "osworld": {"machines": "qemu"}, "qemu": {"image": "debian-office"}}
)
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
    assert runtime_of(OFFICE) is TaskRuntime.OSWORLD_OFFICE
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
        (task(""), "evaluator.func is missing", "evaluator.func is missing", "evaluator.func is missing"),
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


@pytest.mark.parametrize(
    "needing",
    [step("open", path="/home/user/Book.XLSX"), step("launch", command=["/usr/bin/soffice", "--calc"])],
)
def test_only_the_office_image_opens_office_files(needing):
    wanted = task("exact_match", "vm_command_line", needing)
    assert "is not installed in our desktops" in reason_unsupported(TaskRuntime.OSWORLD_HERE, wanted)
    assert reason_unsupported(TaskRuntime.OSWORLD_OFFICE, wanted) == ""
    assert reason_unsupported(TaskRuntime.OSWORLD, wanted) == ""


@pytest.mark.parametrize(
    ("needing", "here", "office"),
    [
        (step("launch", command=["gimp"]), "gimp is not installed", ""),
        (
            step("launch", command=["google-chrome", "--remote-debugging-port=1337"]),
            "google-chrome is not",
            "",
        ),
        (step("launch", command=["code"]), "code is not installed", "code is not installed"),
        (step("execute", command="cd /x && sudo -S mkdir y", shell=True), "have no sudo", "have no sudo"),
        (
            step("chrome_open_tabs", urls_to_open=["https://example.org"]),
            "have no Google Chrome",
            "config[0]: it opens live web sites, and our desktops have no network",
        ),
    ],
)
def test_the_office_machine_is_judged_by_the_commands_of_its_image(needing, here, office):
    wanted = task("exact_match", "vm_command_line", needing)
    assert here in reason_unsupported(TaskRuntime.OSWORLD_HERE, wanted)
    reason = reason_unsupported(TaskRuntime.OSWORLD_OFFICE, wanted)
    assert office in reason
    assert bool(office) == bool(reason), reason


def test_what_a_getter_and_the_last_steps_start_counts_too():
    asked = task(result="vm_command_line", postconfig=[step("launch", command="code .")])
    assert "evaluator.postconfig[0]: code is not" in reason_unsupported(TaskRuntime.OSWORLD_OFFICE, asked)
    getter = {"type": "vm_command_line", "command": "pactl list sinks | grep Volume"}
    asked = task().model_copy(update={"evaluator": {**task().evaluator, "result": getter}})
    assert "evaluator.result: pactl is not" in reason_unsupported(TaskRuntime.OSWORLD_OFFICE, asked)


def test_a_task_that_wants_the_internet_by_its_words_is_named():
    wanted = task().model_copy(update={"task_id": "osworld/vlc.bba3381f-b5eb-4439-bd9e-80c22218d5a7"})
    assert "it needs the internet" in reason_unsupported(TaskRuntime.OSWORLD_OFFICE, wanted)
    assert reason_unsupported(TaskRuntime.OSWORLD, wanted) == ""


def windows_task(**evaluator) -> Task:
    """One that opens a document, as OSWorld's Windows tasks do."""
    place = r"C:\Users\User\report.docx"
    getter = {"type": "vm_file", "path": place, "dest": "a.docx"}
    compared = {"func": "compare_docx_files", "result": getter, "expected": getter, **evaluator}
    return Task(task_id="w", instruction="Go.", config=(step("open", path=place),), evaluator=compared)


def runs_on(wanted: Task) -> set[str]:
    return {runtime.value for runtime in TaskRuntime if not reason_unsupported(runtime, wanted)}


def test_no_linux_runtime_runs_a_windows_task_and_each_says_why():
    assert runs_on(windows_task()) == {"osworld-windows"}
    for runtime in TaskRuntime:
        if runtime.system == "linux":
            reason = reason_unsupported(runtime, windows_task())
            assert reason == "config[0].parameters.path: it is made for Windows, and these desktops run Linux"


LINUX = {"own", "own-office", "osworld-here", "osworld-office", "osworld"}


@pytest.mark.parametrize(
    ("verb", "parameters", "is_of_windows"),
    [
        ("execute", {"command": ["mkdir", "C:\\Work"]}, True),
        ("execute", {"command": "del c:/Users/User/x.txt", "shell": True}, True),
        ("execute", {"command": "explorer.exe ."}, True),
        ("execute", {"command": ["powershell", "-Command", "ls"]}, True),
        ("execute", {"command": "type %USERPROFILE%\\a.txt"}, True),
        ("launch", {"command": ["7z.exe", "x", "a.zip"]}, True),
        ("execute", {"command": "echo 'file:///home/user/a' https://x.org/a:/b %20temp%20"}, False),
        ("launch", {"command": ["start", "msedge"]}, True),
        ("launch", {"command": ["Stop-Process", "-Name", "vlc"]}, True),
        ("execute", {"command": ["run", "ms-settings:display"]}, True),
        ("open", {"path": "HKCU:\\Software\\Run"}, True),
        ("open", {"path": "\\\\server\\share\\a.docx"}, True),
        ("execute", {"command": ["grep", "-E", "\\\\d+\\.", "/home/user/a"]}, False),
        ("execute", {"command": "echo a:b"}, False),
        ("execute", {"command": "echo forms-list: settings"}, False),
        ("write_file", {"path": "/home/user/a.txt", "content": "C:\\Windows"}, False),
        ("sleep", {"seconds": 1}, False),
    ],
)
def test_paths_and_programs_say_the_system(verb, parameters, is_of_windows):
    wanted = task("exact_match", "vm_command_line", step(verb, **parameters))
    reason = reason_unsupported(TaskRuntime.OWN, wanted)
    assert ("it is made for Windows" in reason) == is_of_windows


def test_a_task_may_say_its_system_itself():
    assert runs_on(task()) == LINUX | {"windows", "osworld-windows"}
    said = task().model_copy(update={"os": "windows"})
    assert runs_on(said) == {"windows", "osworld-windows"}
    assert reason_unsupported(TaskRuntime.OWN, said).startswith("os: it is made for Windows")
    assert runs_on(task().model_copy(update={"os": "linux"})) == LINUX
    assert reason_unsupported(TaskRuntime.OSWORLD, windows_task().model_copy(update={"os": "linux"})) == ""


def test_windows_desktops_have_a_runtime_of_their_own():
    assert runtime_of(DesktopConfig.model_validate({"provider": "windows"})) is TaskRuntime.WINDOWS
    lent = {"provider": "remote", "remote": {"os_type": "Windows"}}
    assert runtime_of(DesktopConfig.model_validate(lent)) is TaskRuntime.WINDOWS
    theirs = {"provider": "osworld", "osworld": {"machines": "docker", "os_type": "Windows"}}
    assert runtime_of(DesktopConfig.model_validate(theirs)) is TaskRuntime.OSWORLD_WINDOWS
    keyboard = generate_windows_keyboard(0)
    assert {frozenset(runs_on(one)) for one in keyboard} == {
        frozenset({"windows"}),
        frozenset({"windows", "osworld-windows"}),
    }
    assert reason_unsupported(TaskRuntime.WINDOWS, generate()[0]).endswith("these desktops run Windows")


@pytest.mark.parametrize(("said", "system"), [("macOS", "macos"), ("Android", "android")])
def test_only_what_is_made_for_it_runs_on_macos_and_android(said, system):
    there = DesktopConfig.model_validate({"provider": "remote", "remote": {"os_type": said}})
    assert runtime_of(there) == system
    assert runs_on(task().model_copy(update={"os": system})) == {system}
    reason = reason_unsupported(runtime_of(there), task())
    assert reason == f"os: nothing says that it is made for {said}, which these desktops run"


def test_all_runtimes_that_one_task_can_have_fit_into_their_column():
    for system in ("", "linux", "windows", "macos", "android"):
        found = runs_on(task().model_copy(update={"os": system}))
        assert found
        assert len("".join(f"|{one}" for one in found) + "|") <= 80


def test_every_runtime_says_where_it_is_and_how_to_get_there():
    assert set(WHERE) == set(TaskRuntime)


def test_reasons_are_grouped_by_what_is_missing():
    groups = grouped_reasons(
        [
            ("a", "config[0]: setup verb x is not supported; evaluator.func is missing"),
            ("b", "config[3]: setup verb x is not supported; config[4]: setup verb x is not supported"),
            ("c", ""),
        ]
    )
    assert [(group.reason, group.task_ids) for group in groups] == [
        ("setup verb x is not supported", ("a", "b")),
        ("evaluator.func is missing", ("a",)),
    ]


def test_a_metric_of_ours_wants_its_own_rule():
    def reads(**rules) -> Task:
        return task("file_contains", "vm_file", expected={"type": "rule", "rules": rules})

    assert reason_unsupported(TaskRuntime.OWN, reads(text="hello")) == ""
    theirs = reads(expected=["hello"])
    assert "metric file_contains needs text" in reason_unsupported(TaskRuntime.OWN, theirs)
    assert reason_unsupported(TaskRuntime.OSWORLD_HERE, theirs) == ""


@pytest.mark.parametrize(
    ("method", "ref", "problem"),
    [
        ("re", "^dark", ""),
        ("re.I", "^dark", ""),
        ("approx:0.5", 3, ""),
        ("range.te", [0, 2], ""),
        ("str_list_eq", ["a"], ""),
        ("in", [1, 2], "check_json has no method 'in'"),
        ("contains", "a", "check_json has no method 'contains'"),
        ("spreadsheet_range", ["A1", "B2"], "check_json has no method 'spreadsheet_range'"),
        ("range.xy", [0, 2], "check_json has no method 'range.xy'"),
        ("re.NOPE", "a", "'NOPE' is no flag"),
        ("re", "(", "ref is no pattern for method 're'"),
        ("approx", 3, "method 'approx' needs numbers"),
        ("range.te", 2, "ref of method 'range.te' must be [low, high]"),
        ("str_set_eq", 5, "ref of methods str_list_eq and str_set_eq must be a list"),
    ],
)
def test_a_method_of_check_json_is_known_or_named_when_the_task_is_judged(method, ref, problem):
    rule = {"key": ["theme"], "method": method, "ref": ref}
    for part in ("expect", "unexpect"):
        expected = {"type": "rule", "rules": {part: [{**rule, "method": "eq"}, rule]}}
        asked = task("check_json", "vm_file", expected=expected)
        for runtime in (one for one in TaskRuntime if one.system in UNSAID_RUNS_ON):
            reason = reason_unsupported(runtime, asked)
            assert (problem in reason) if problem else reason == ""
            assert not problem or f"rules.{part}[1]: " in reason


def test_a_rule_of_check_json_that_is_none_is_named_when_the_task_is_judged():
    for rules, problem in (
        ([], "must be an object"),
        ({"expect": "a"}, "expect must be a list"),
        ({"expect": [{"key": ["a"]}]}, "needs key, method and ref"),
        ({"expect": [{"key": "a", "method": "eq", "ref": 1}]}, "key must be a list"),
    ):
        asked = task("check_json", "vm_file", expected={"type": "rule", "rules": rules})
        assert problem in reason_unsupported(TaskRuntime.OWN, asked)


def test_tasks_with_verbs_of_our_own_do_not_run_with_osworld():
    panel = next(task for task in generate() if task.family == "menu")
    assert reason_unsupported(TaskRuntime.OWN, panel) == ""
    assert "panel: DesktopEnv 1.0.2 has no such function" in reason_unsupported(TaskRuntime.OSWORLD, panel)
