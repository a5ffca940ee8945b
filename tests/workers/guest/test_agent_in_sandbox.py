"""The in-desktop agent's own Python, input by pyautogui's words, windows and pictures, in a sandbox."""

from __future__ import annotations

import io
import json
import urllib.parse
from functools import partial

import pytest
from PIL import Image

from testing.watch_installation import wait_for

pytestmark = pytest.mark.desktop
FORM = "application/x-www-form-urlencoded"


def python(desktop, code: str, *arguments: str, timeout_s: float = 60.0):
    return desktop.agent.execute(["python", "-c", code, *arguments], timeout_s=timeout_s)


def answer(desktop, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
    status, raw = desktop.agent.call(method, path, json.dumps(body or {}).encode())
    return status, json.loads(raw)


def test_python_code_runs_as_python_itself_would_run_it(desktop):
    left = python(desktop, "import sys; print(sys.argv, __name__); sys.stderr.write('oh')", "a", "b c")
    assert left.__dict__ == {"returncode": 0, "output": "['-c', 'a', 'b c'] __main__\n", "error": "oh"}
    failed = python(desktop, "def f():\n    return 1 / 0\nf()")
    assert failed.returncode == 1
    assert failed.error.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<string>", line 3, in <module>',
        '  File "<string>", line 2, in f',
        "ZeroDivisionError: division by zero",
    ]
    assert python(desktop, "raise SystemExit(7)").returncode == 7
    assert python(desktop, "import sys; sys.exit('no')").__dict__ == {
        "returncode": 1,
        "output": "",
        "error": "no\n",
    }
    assert "SyntaxError" in python(desktop, "a b").error
    assert python(desktop, "import os; os.kill(os.getpid(), 9)").returncode == -9
    assert python(desktop, "import asyncio; asyncio.run(asyncio.sleep(0)); print(1)").output == "1\n"
    threads = (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
    )
    assert python(desktop, threads).output == "late\n"


def test_one_program_leaves_nothing_for_the_next(desktop):
    python(desktop, "import os, sys, json\nos.environ['LEFT'] = '1'; json.LEFT = 1; sys.path.append('/left')")
    seen = python(
        desktop, "import os, sys, json\nprint('LEFT' in os.environ, hasattr(json, 'LEFT'), sys.path)"
    )
    assert seen.output.startswith("False False")
    assert "/left" not in seen.output


def test_python_code_is_ended_with_its_children_at_the_timeout(desktop):
    code = "import subprocess, time\nsubprocess.Popen(['sleep', '61'])\ntime.sleep(60)"
    status, said = answer(
        desktop, "POST", "/execute", {"command": ["python3", "-c", code], "timeout": 1.0, "shell": False}
    )
    assert status == 500
    assert "no end after 1 s" in said["message"]
    programs = lambda: answer(desktop, "GET", "/health")[1]["programs"].values()  # noqa: E731
    wait_for("its end", lambda: "sleep" not in programs(), poll_s=0)


def test_a_program_sees_nothing_of_the_interpreter_it_is_forked_from_and_a_reset_changes_nothing(desktop):
    code = "import os; print(os.getppid())"
    assert python(desktop, code).output == "0\n", "its parent is outside of its pid namespace"
    desktop.reset()
    assert python(desktop, code).output == "0\n"
    assert answer(desktop, "GET", "/health")[1]["programs"] == {}


def test_scripts_answer_with_all_names_that_callers_look_for(desktop):
    status, said = answer(desktop, "POST", "/run_python", {"code": "print('out'); 1 / 0"})
    assert status == 200
    assert said["status"] == "error"
    assert said["output"] == "out\n"
    assert "ZeroDivisionError" in said["error"]
    assert said["return_code"] == said["returncode"] == 1
    script = {"script": "cd /tmp\necho $PWD $0; exit 3", "timeout": 20, "working_dir": None}
    status, said = answer(desktop, "POST", "/run_bash_script", script)
    assert (status, said["returncode"], said["output"]) == (200, 3, "/tmp /bin/bash\n")
    status, said = answer(desktop, "POST", "/run_bash_script", {"script": "sleep 9", "timeout": 0.2})
    assert (status, said["status"], said["returncode"]) == (200, "error", -1)
    assert "no end after 0.2 s" in said["error"]


def test_the_screenshot_is_the_hosts_picture_with_the_pointer(desktop):
    python(desktop, "import pyautogui; pyautogui.FAILSAFE = False; pyautogui.moveTo(100, 90)")
    status, raw = desktop.agent.call("GET", "/screenshot")
    assert status == 200
    seen = Image.open(io.BytesIO(raw)).convert("RGB")
    expected = desktop.observe().image().convert("RGB")
    assert seen.size == expected.size == (512, 384)
    different = [
        (x, y) for x in range(512) for y in range(384) if seen.getpixel((x, y)) != expected.getpixel((x, y))
    ]
    assert different
    assert all(60 <= x <= 140 and 50 <= y <= 130 for x, y in different)


TEXT = "Az09 <b> ~`|\\\"'@#{}[]$%^&*()_+-=;:,./? é ß ñ Ω Ж 中 🙂 €"


def note(desktop) -> str:
    return desktop.agent.get("~/note.txt").decode()


def test_pyautogui_types_clicks_and_presses_in_an_editor(desktop):
    desktop.agent.put("~/note.txt", b"")
    desktop.agent.launch(["mousepad", f"{desktop.home}/note.txt"])
    desktop.wait_for_window("note.txt")
    code = (
        "import pyautogui, time; pyautogui.FAILSAFE = False\n"
        f"pyautogui.click(250, 200); pyautogui.write({TEXT!r}); pyautogui.press('enter')\n"
        "pyautogui.typewrite(['x', 'y', 'left', 'z']); pyautogui.hotkey('ctrl', 's')"
    )
    assert python(desktop, code).error == ""
    wait_for(partial(note, desktop), lambda: note(desktop) == f"{TEXT}\nxzy", poll_s=0)


def test_more_characters_are_typed_than_the_keyboard_has_free_keys(desktop):
    desktop.agent.put("~/note.txt", b"")
    desktop.agent.launch(["mousepad", f"{desktop.home}/note.txt"])
    desktop.wait_for_window("note.txt")
    wanted = ""
    # The second program finds the first one's characters on the keys, the third needs more than there are.
    for first, last in ((0xC0, 0xD7), (0x410, 0x430), (0x4E00, 0x4E60), (0xC0, 0xF7)):
        text = "".join(map(chr, range(first, last)))
        wanted += text
        code = "import pyautogui, time; pyautogui.FAILSAFE = False; time.sleep(1); pyautogui.write({!r})"
        assert python(desktop, code.format(text)).error == ""
    python(desktop, "import pyautogui; pyautogui.FAILSAFE = False; pyautogui.hotkey('ctrl', 's')")
    wait_for(partial(note, desktop), lambda: note(desktop) == wanted, poll_s=0)


def test_pyautogui_knows_where_things_are(desktop):
    code = (
        "import pyautogui as p; p.FAILSAFE = False; p.PAUSE = 0\n"
        "p.moveTo(10, 20); p.moveRel(5, -3); a = tuple(p.position())\n"
        "p.moveTo(-5, 9999); b = tuple(p.position())\n"
        "p.moveTo((30, 40), duration=0.2, tween=p.easeInOutElastic); c = tuple(p.position())\n"
        "print(tuple(p.size()), a, b, c, p.onScreen(0, 0), p.onScreen(512, 0))"
    )
    assert python(desktop, code).output == "(512, 384) (15, 17) (0, 383) (30, 40) True False\n"
    unknown = python(desktop, "import pyautogui; pyautogui.press('nokey')").error
    assert "key 'nokey' is unknown" in unknown
    corner = "import pyautogui as p; p.FAILSAFE = False; p.moveTo(0, 0); p.FAILSAFE = True; p.click()"
    assert "FailSafeException" in python(desktop, corner).error


def test_windows_are_found_activated_measured_and_closed_by_name(desktop):
    for name in ("one.txt", "two.txt"):
        desktop.agent.put(f"~/{name}", b"")
    desktop.agent.launch(["mousepad", f"{desktop.home}/one.txt"])
    desktop.wait_for_window("one.txt")
    check = {
        "command": ["xterm", "-T", "the terminal", "-e", "sleep", "100"],
        "verification": {"window_exists": "the terminal", "command_success": "test -f ~/one.txt"},
        "max_wait_time": 20,
        "check_interval": 0.1,
    }
    status, said = answer(desktop, "POST", "/setup/execute_with_verification", check)
    assert status == 200
    assert said["verification"] == {"window_exists": True, "command_success": True}
    assert answer(desktop, "POST", "/setup/activate_window", {"window_name": "ONE.txt"})[0] == 200
    ours = lambda: next(window for window in desktop.windows() if "one.txt" in window.title)  # noqa: E731
    wait_for("the first to be active", lambda: ours().is_active, poll_s=0)
    form = urllib.parse.urlencode({"app_class_name": "mousepad"}).encode()
    status, raw = desktop.agent.call("POST", "/window_size", form, kind=FORM)
    window = ours()
    assert json.loads(raw) == {"width": window.width, "height": window.height}
    wrong = {"window_name": "the term", "strict": True}
    assert answer(desktop, "POST", "/setup/close_window", wrong)[0] == 404
    right = {"window_name": "xterm", "by_class": True}
    assert answer(desktop, "POST", "/setup/close_window", right)[0] == 200
    titles = lambda: [window.title for window in desktop.windows()]  # noqa: E731
    wait_for("its end", lambda: "the terminal" not in titles(), poll_s=0)


def test_a_condition_that_never_holds_is_told_with_what_was_seen(desktop):
    check = {
        "command": "true",
        "verification": {"command_success": "test -f /tmp/never"},
        "max_wait_time": 0.3,
        "check_interval": 0.1,
    }
    status, said = answer(desktop, "POST", "/setup/execute_with_verification", check)
    assert status == 500
    assert said["verification"] == {"command_success": False}
    assert "not verified after 0.3 s" in said["message"]


def test_a_folder_is_listed_as_a_tree(desktop):
    desktop.agent.put("~/a/b/c.txt", b"1")
    _, said = answer(desktop, "POST", "/list_directory", {"path": "~/a"})
    inner = {"type": "directory", "name": "b", "children": [{"type": "file", "name": "c.txt"}]}
    assert said["directory_tree"] == {"type": "directory", "name": "a", "children": [inner]}
    status, said = answer(desktop, "POST", "/list_directory", {"path": "/usr"})
    assert status == 400
    assert "name a smaller folder" in said["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/accessibility", {}, 500, "accessibility is off"),
        ("POST", "/desktop_path", {}, 404, "no folder"),
        ("POST", "/wallpaper", {}, 404, "no wallpaper"),
        ("POST", "/setup/change_wallpaper", {"path": "~/no.png"}, 404, "no file"),
        ("POST", "/setup/activate_window", {"window_name": "none such"}, 404, "no window 'none such'"),
        ("POST", "/run_python", {}, 400, "code is empty"),
        ("POST", "/run_bash_script", {"script": ""}, 400, "script is empty"),
        ("POST", "/end_recording", {}, 400, "no recording was started"),
    ],
)
def test_what_a_sandbox_cannot_do_is_said(desktop, method, path, body, status, message):
    code, said = answer(desktop, method, path, body)
    assert code == status
    assert message in said["message"]
    assert answer(desktop, "GET", "/terminal") == (200, {"status": "success", "output": None})
    assert desktop.agent.call("GET", "/platform") == (200, b"Linux")
