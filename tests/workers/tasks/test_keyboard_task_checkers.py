"""The five checkers of keyboard tasks give varied rewards, on prepared states of a real desktop too.

The desktop runs Linux: a key file stands in for the registry, the programs are Debian's. What Windows' own
programs answer is read from samples of their documented formats.
"""

from typing import Any

import pytest

from workers.desktops.agent_contract import ExecResult
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks.errors import EvaluatorError
from workers.tasks.evaluators.guest_state import LinuxState, WindowsState, registry_value
from workers.tasks.evaluators.keyboard_task_checkers import (
    decoded,
    file_contains,
    file_exists,
    process_running,
    setting_value,
    window_open,
)
from workers.tasks.prepare_and_score import judge_by

NOTEPAD = {"names": ["notepad"], "unwanted": ["cmd"], "related": ["mspaint"]}


@pytest.mark.parametrize(
    ("running", "score"),
    [
        (["explorer.exe"], 0.0),
        (["explorer.exe", "mspaint.exe"], 0.2),
        (["Notepad.exe", "cmd.exe"], 0.5),
        (["Notepad.exe", "explorer.exe"], 1.0),
        ([], 0.0),
    ],
)
def test_a_running_program_scores_by_what_runs_beside_it(running, score):
    assert process_running(running, NOTEPAD, {}) == score


def test_too_few_of_a_program_is_half_the_task():
    assert process_running(["a.exe"], {"names": ["a"], "count": 2}, {}) == 0.5
    assert process_running(["a.exe", "A"], {"names": ["a"], "count": 2}, {}) == 1.0


def window(title: str, active: bool = False) -> dict[str, Any]:
    return {"title": title, "program": "x", "active": active}


@pytest.mark.parametrize(
    ("windows", "score"),
    [
        ([], 0.0),
        ([window("Program Manager", True)], 0.0),
        ([window("Sound", True)], 0.2),
        ([window("Mouse Properties"), window("Sound", True)], 0.5),
        ([window("Mouse Properties", True)], 1.0),
    ],
)
def test_an_open_window_scores_by_whether_it_is_in_front(windows, score):
    assert window_open(windows, {"title": "mouse properties", "related": ["Sound"]}, {}) == score


def entry(path: str, folder: bool = False) -> dict[str, Any]:
    return {"path": path, "folder": folder}


MOVE = {"path": "done/plan.txt", "gone": ["plan.txt"], "before": ["other.txt"]}


@pytest.mark.parametrize(
    ("files", "rules", "score"),
    [
        ([entry("plan.txt"), entry("other.txt")], MOVE, 0.0),
        ([entry("plan.txt"), entry("done", True), entry("plan.bak")], MOVE, 0.2),
        ([entry("plan.txt"), entry("Done/Plan.TXT")], MOVE, 0.5),
        ([entry("done/plan.txt"), entry("other.txt")], MOVE, 1.0),
        ([], {"path": "box", "folder": True}, 0.0),
        ([entry("box.txt")], {"path": "box", "folder": True}, 0.2),
        ([entry("box")], {"path": "box", "folder": True}, 0.5),
        ([entry("box", True)], {"path": "box", "folder": True}, 1.0),
        ([entry("note.txt.txt")], {"path": "note.txt"}, 0.2),
        ([entry("x/note.txt")], {"path": "note.txt"}, 0.2),
    ],
)
def test_a_file_scores_by_name_kind_and_what_was_left_behind(files, rules, score):
    assert file_exists(files, rules, {}) == score


@pytest.mark.parametrize(
    ("content", "score"),
    [
        (None, 0.0),
        (b"", 0.2),
        (b"something else", 0.2),
        (b"RED   fox", 0.5),
        (b"well, red fox it is", 0.5),
        (b"red fox", 1.0),
        (b"red fox \r\n\r\n", 1.0),
        ("red fox\r\n".encode("utf-16"), 1.0),
        (b"\xef\xbb\xbfred fox", 1.0),
    ],
)
def test_a_text_scores_by_how_much_of_it_is_right(content, score):
    assert file_contains(content, {"text": "red fox"}, {}) == score


def test_an_unchanged_file_scores_nothing():
    assert file_contains(b"old\r\n", {"text": "new", "before": "old\n"}, {}) == 0.0
    assert file_contains(b"old new", {"text": "new", "before": "old\n"}, {}) == 0.5


def test_bytes_of_an_old_code_page_are_still_read():
    assert decoded(b"caf\xe9") == "caf\u00e9"


@pytest.mark.parametrize(
    ("state", "rules", "score"),
    [
        ({"key": False, "value": None}, {"value": "7"}, 0.0),
        ({"key": True, "value": None}, {"value": "7"}, 0.2),
        ({"key": True, "value": None}, {"value": "7", "had_key": True}, 0.0),
        ({"key": True, "value": "8"}, {"value": "7"}, 0.5),
        ({"key": True, "value": "8"}, {"value": "7", "before": "8"}, 0.0),
        ({"key": True, "value": "7"}, {"value": "7"}, 1.0),
    ],
)
def test_a_setting_scores_by_its_value_and_by_what_was_there_before(state, rules, score):
    assert setting_value(state, rules, {}) == score


@pytest.mark.parametrize(
    ("checker", "state"),
    [(process_running, []), (window_open, []), (file_exists, []), (file_contains, b""), (setting_value, {})],
)
def test_a_rule_that_says_nothing_is_the_tasks_mistake(checker, state):
    with pytest.raises(ValueError, match="expected must be a rule with"):
        checker(state, {}, {})


# -- on a real desktop ------------------------------------------------------------------------


def score(desktop: DesktopEnv, func: str, result: dict, **rules: Any) -> float:
    evaluator = {"func": func, "result": result, "expected": {"type": "rule", "rules": rules}}
    return judge_by(evaluator, desktop).score


@pytest.mark.desktop
def test_programs_and_windows_of_a_desktop_score_as_they_come_and_go(desktop):
    def scores() -> tuple[float, float]:
        return (
            score(desktop, "process_running", {"type": "guest_processes"}, names=["mousepad"],
                  unwanted=["xterm"], related=["galculator"]),
            score(desktop, "window_open", {"type": "guest_windows"}, title="Mousepad",
                  related=["galculator"]),
        )  # fmt: skip

    assert scores() == (0.0, 0.0)
    desktop.agent.launch(["galculator"])
    desktop.wait_for_window("galculator")
    assert scores() == (0.2, 0.2)
    desktop.agent.launch(["mousepad"])
    desktop.wait_for_window("Mousepad")
    assert scores() == (1.0, 1.0)
    desktop.agent.launch(["xterm"])
    desktop.wait_for_window("xterm")
    assert scores() == (0.5, 0.5)


@pytest.mark.desktop
def test_files_of_a_desktop_score_as_they_are_made_and_moved(desktop):
    def scores() -> tuple[float, float]:
        return (
            score(desktop, "file_exists", {"type": "guest_files", "folder": "/home/user/work"},
                  path="new/plan.txt", gone=["plan.txt"]),
            score(desktop, "file_contains", {"type": "vm_file", "path": "~/work/new/plan.txt"},
                  text="red fox"),
        )  # fmt: skip

    assert scores() == (0.0, 0.0)
    desktop.agent.put("~/work/plan.txt", b"x")
    assert scores() == (0.0, 0.0)
    desktop.agent.put("~/work/plan.txt.txt", b"x")
    assert scores() == (0.2, 0.0)
    desktop.agent.put("~/work/new/plan.txt", b"blue hen")
    assert scores() == (0.5, 0.2)
    desktop.agent.put("~/work/new/plan.txt", b"a red fox")
    desktop.agent.execute("rm ~/work/plan.txt", shell=True)
    assert scores() == (1.0, 0.5)
    desktop.agent.put("~/work/new/plan.txt", b"red fox\n")
    assert scores() == (1.0, 1.0)


@pytest.mark.desktop
def test_a_setting_of_a_desktop_scores_as_it_is_made(desktop):
    def now() -> float:
        key = "/home/user/settings.ini"
        return score(
            desktop, "setting_value", {"type": "guest_setting", "key": key, "name": "Size"}, value="7"
        )

    assert now() == 0.0
    desktop.agent.put("~/settings.ini", b"")
    assert now() == 0.2
    desktop.agent.put("~/settings.ini", b"Size = 8\n")
    assert now() == 0.5
    desktop.agent.put("~/settings.ini", b"Colour=1\nSize=7\n")
    assert now() == 1.0


# -- what Windows' programs answer ------------------------------------------------------------


class Answers:
    """A Windows guest's agent by table: the first words of a command -> its result."""

    platform = "windows"

    def __init__(self, **answers: ExecResult) -> None:
        self.answers = answers
        self.asked: list[str | list[str]] = []

    def execute(self, command: str | list[str], **_: object) -> ExecResult:
        self.asked.append(command)
        line = command if isinstance(command, str) else " ".join(command)
        return next(
            (result for part, result in self.answers.items() if part in line), ExecResult(1, "", "no")
        )


class WindowsDesktop:
    def __init__(self, answers: dict[str, ExecResult]) -> None:
        self.agent = Answers()
        self.agent.answers = answers


def test_tasklist_and_dir_are_read():
    processes = '"System","4","Services","0","148 K"\r\n"notepad.exe","1","","1","9 K"\r\n'
    files = "C:\\Work\\plan.txt\r\nC:\\Work\\Done\\a b.txt\r\nC:\\Work\\1\\2\\3\\4.txt\r\n"
    answers = {"tasklist": processes, "/ad": "C:\\Work\\Done\r\n", "/a-d": files}
    desktop = WindowsDesktop({part: ExecResult(0, text, "") for part, text in answers.items()})
    state = WindowsState()
    assert state.processes(desktop) == ["System", "notepad.exe"]
    assert state.files(desktop, "c:\\work\\") == [
        {"path": "Done", "folder": True},
        {"path": "plan.txt", "folder": False},
        {"path": "Done/a b.txt", "folder": False},
    ]


def test_the_users_own_registry_is_asked_not_the_agents():
    value = "\r\nHKEY_USERS\\S-1-5-21-1-2-3-500\\Environment\r\n    COLOUR    REG_SZ    dark red\r\n\r\n"
    hives = "HKEY_USERS\\.DEFAULT\r\nHKEY_USERS\\S-1-5-18\r\nHKEY_USERS\\S-1-5-21-1-2-3-500\r\n"
    hives += "HKEY_USERS\\S-1-5-21-1-2-3-500_Classes\r\n"
    answers = {"query HKU\\": ExecResult(0, value, ""), "query HKU": ExecResult(0, hives, "")}
    desktop = WindowsDesktop(answers)
    assert WindowsState().setting(desktop, "HKCU\\Environment", "Colour") == {
        "key": True,
        "value": "dark red",
    }
    assert desktop.agent.asked[-1] == [
        "reg.exe", "query", "HKU\\S-1-5-21-1-2-3-500\\Environment", "/v", "Colour",
    ]  # fmt: skip
    answers["query HKU"] = ExecResult(0, "HKEY_USERS\\.DEFAULT\r\n", "")
    with pytest.raises(EvaluatorError, match="0 users are logged in"):
        WindowsState().setting(desktop, "HKCU\\Environment", "Colour")


def test_registry_values_of_every_kind_become_text():
    output = (
        "\nKEY\n    Size    REG_DWORD    0x1f\n    Name With Blanks    REG_SZ    a  b\n    Empty    REG_SZ\n"
    )
    assert registry_value(output, "size") == "31"
    assert registry_value(output, "Name With Blanks") == "a  b"
    assert registry_value(output, "Empty") == ""
    assert registry_value(output, "missing") is None


def test_an_unreadable_guest_is_an_error_and_no_score():
    with pytest.raises(EvaluatorError, match="tasklist could not be read"):
        WindowsState().processes(WindowsDesktop({}))
    with pytest.raises(EnvError, match="wmctrl failed: no") as caught:
        LinuxState().windows(WindowsDesktop({"xprop": ExecResult(0, "", "")}))
    assert caught.value.kind is ErrorKind.GUEST
