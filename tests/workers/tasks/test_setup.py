"""Setup verbs and evaluators of OSWorld's schema on a real desktop."""

import pytest

from testing.workers.short_episodes import DONE, typed
from training.contracts.types import Action, Task
from workers.tasks import prepare_and_score
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind

pytestmark = pytest.mark.desktop
FAIL = Action(kind="terminate", status="failure")


def step(verb: str, **parameters) -> dict:
    return {"type": verb, "parameters": parameters}


def command(text: str) -> dict:
    return {"type": "vm_command_line", "command": text, "shell": True}


def equals(text: str, wanted: str) -> dict:
    return {
        "func": "exact_match",
        "result": command(text),
        "expected": {"type": "rule", "rules": {"expected": wanted}},
    }


def task(*steps: dict, evaluator: dict | None = None) -> Task:
    return Task(task_id="t", instruction="", config=steps, evaluator=evaluator or {"func": "infeasible"})


def prepared(desktop, *steps: dict) -> None:
    prepare_and_score.setup(task(*steps), desktop)


def score(desktop, evaluator: dict, last: Action | None = DONE) -> float:
    return prepare_and_score.evaluate(task(evaluator=evaluator), desktop, last)


def test_files_and_commands_prepare_a_desktop(desktop):
    prepared(
        desktop,
        step("write_file", path="/home/user/a/one.txt", content="one"),
        step("upload_file", files=[{"path": "~/two.bin", "content_base64": "AAE="}]),
        step("execute", command="cat a/one.txt > three.txt", shell=True),
        step("command", command=["touch", "four.txt"]),
        step("sleep", seconds=0.01),
    )
    assert desktop.agent.get("~/two.bin") == b"\x00\x01"
    assert desktop.agent.get("/home/user/three.txt") == b"one"
    assert desktop.agent.get("~/four.txt") == b""


def test_until_repeats_a_command_until_it_holds(desktop):
    script = "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n; echo $n"
    prepared(desktop, step("execute", command=script, shell=True, until={"stdout": "3"}))
    assert desktop.agent.get("~/n") == b"3\n"


def test_windows_are_opened_placed_activated_and_closed(desktop):
    prepared(
        desktop,
        step("write_file", path="~/a.txt", content="a"),
        step("write_file", path="~/b.txt", content="b"),
        step("launch", command=["mousepad", "--disable-server", "/home/user/a.txt"]),
        step("place_window", window_name="a.txt", x=20, y=40, width=360, height=200),
        step("open", path="~/b.txt"),
        step("activate_window", window_name="b.txt"),
        step("activate_window", window_name="a.txt"),
    )
    windows = {window.title.split()[0].rsplit("/", 1)[-1]: window for window in desktop.windows()}
    placed = windows["a.txt"]
    assert (placed.x, placed.y, placed.width, placed.height) == (20, 40, 360, 200)
    assert placed.is_active
    prepared(desktop, step("close_window", window_name="a.txt"))
    assert not any("a.txt" in window.title for window in desktop.windows())


def test_keys_can_be_part_of_the_preparation(desktop):
    prepared(
        desktop,
        step("write_file", path="~/a.txt", content="old"),
        step("launch", command=["mousepad", "/home/user/a.txt"]),
        step("place_window", window_name="a.txt", x=20, y=40, width=360, height=200),
        step("press_keys", chords=[["ctrl", "a"], ["Delete"]]),
    )
    desktop.act(typed("new"))
    desktop.observe()
    prepared(desktop, step("press_keys", chords=[["ctrl", "s"]]))
    while desktop.agent.get("~/a.txt") not in (b"new", b"new\n"):
        desktop.observe()


@pytest.mark.parametrize(
    ("bad", "kind", "part"),
    [
        (step("download", files=[]), TaskErrorKind.UNSUPPORTED, "download is not supported"),
        (step("launch", command=["no-such-program"]), TaskErrorKind.DESKTOP, "no-such-program"),
        (step("open", path="~/nothing.txt"), TaskErrorKind.DESKTOP, "no file"),
        (
            step("upload_file", files=[{"path": "a", "content_base64": "???"}]),
            TaskErrorKind.TASK,
            "upload_file",
        ),
        (step("sleep", seconds="soon"), TaskErrorKind.TASK, "step 0 (sleep)"),
    ],
)
def test_a_failing_step_is_a_setup_error_of_its_kind(desktop, bad, kind, part):
    with pytest.raises(SetupError) as caught:
        prepared(desktop, bad)
    assert caught.value.kind is kind
    assert part in str(caught.value)


def test_metrics_read_files_and_commands(desktop):
    desktop.agent.put("~/a.txt", b"red fox\n")
    assert score(desktop, equals("cat ~/a.txt", "red fox\n")) == 1.0
    assert score(desktop, equals("cat ~/a.txt", "owl\n")) == 0.0
    assert score(desktop, equals("cat ~/missing.txt 2>/dev/null", "red fox\n")) == 0.0
    same = {
        "func": "compare_text_file",
        "result": {"type": "vm_file", "path": "/home/user/a.txt", "dest": "a.txt"},
        "expected": {"type": "inline", "content": "red fox\n"},
    }
    assert score(desktop, same) == 1.0
    assert score(desktop, {**same, "result": {"type": "vm_file", "path": "/home/user/none"}}) == 0.0


def test_several_metrics_are_joined_by_and_or(desktop):
    true, false = equals("echo a", "a\n"), equals("echo a", "b\n")
    both = {key: [true[key], false[key]] for key in true}
    assert score(desktop, both) == 0.0
    assert score(desktop, {**both, "conj": "or"}) == 1.0
    assert score(desktop, {key: [true[key]] * 2 for key in true}) == 1.0


def test_the_postconfig_runs_before_the_metrics(desktop):
    evaluator = equals("cat ~/a.txt", "late")
    assert (
        score(desktop, {**evaluator, "postconfig": [step("write_file", path="~/a.txt", content="late")]})
        == 1.0
    )


def test_an_evaluator_waits_for_a_slow_write_only_as_long_as_it_says(desktop):
    wait = "until [ -e ~/go ]; do sleep 0.05; done; sleep 1"
    desktop.agent.launch(f"{wait}; printf done > ~/slow.txt", shell=True)
    evaluator = equals("cat ~/slow.txt 2>/dev/null", "done")
    assert score(desktop, evaluator) == 0.0
    desktop.agent.put("~/go", b"")
    assert score(desktop, {**evaluator, "wait_s": 3600}) == 1.0


@pytest.mark.parametrize(("last", "value"), [(FAIL, 1.0), (DONE, 0.0), (None, 0.0), (typed("x"), 0.0)])
def test_an_infeasible_task_is_solved_by_saying_so(desktop, last, value):
    assert score(desktop, {"func": "infeasible"}, last) == value


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"func": "compare_table"}, TaskErrorKind.UNSUPPORTED),
        ({"result": {"type": "cloud_file"}}, TaskErrorKind.UNSUPPORTED),
        ({"expected": {"type": "rule", "rules": {}}}, TaskErrorKind.TASK),
        ({"result": {"type": "vm_file"}}, TaskErrorKind.TASK),
        ({"result": {"type": "vm_command_line", "command": ["no-such-program"]}}, TaskErrorKind.DESKTOP),
        ({"postconfig": [step("open", path="~/nothing")]}, TaskErrorKind.DESKTOP),
    ],
)
def test_a_failing_evaluator_is_an_error_and_never_a_score(desktop, change, kind):
    with pytest.raises(EvaluatorError) as caught:
        score(desktop, {**equals("echo a", "a\n"), **change})
    assert caught.value.kind is kind
