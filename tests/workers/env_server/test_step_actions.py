"""What a step of the env protocols may say, and what is refused unread."""

import pytest

from training.contracts.types import Action, ActionKind
from workers.desktops.contract import EnvError, ErrorKind
from workers.env_server.step_actions import MAX_CALLS, read_program

SCREEN = (512, 384)


def read(action: object) -> list[Action]:
    return read_program(action, SCREEN, pause_s=2.0)


def test_coordinates_are_screen_pixels():
    assert read("pyautogui.click(100, 50)") == [Action(kind=ActionKind.CLICK, x=100, y=50)]


def test_a_block_of_several_calls_is_several_actions():
    code = """```python
import pyautogui
import time
pyautogui.FAILSAFE = False
pyautogui.click(x=10, y=20)
time.sleep(0.5)
pyautogui.write('a; b\\n', interval=0.05)
```"""
    kinds = [action.kind for action in read(code)]
    assert kinds == [ActionKind.CLICK, ActionKind.WAIT, ActionKind.TYPE]
    assert read(code)[2].text == "a; b\n"


def test_control_words_end_or_pause():
    assert read("DONE")[0].status == "success"
    assert read("FAIL")[0].status == "failure"
    assert read({"action_type": "DONE"})[0].status == "success"
    assert read("WAIT") == [Action(kind=ActionKind.WAIT, seconds=2.0)]


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("", "send pyautogui code"),
        (None, "send pyautogui code"),
        (["pyautogui.click(1, 2)"], "send pyautogui code"),
        ("import os", "holds no call"),
        ("import os; os.system('true')", "no action|not allowed|only"),
        ("pyautogui.click(1, 2); __import__('os').system('true')", "only|no action"),
        ("pyautogui.click(open('/etc/passwd'))", "literal"),
        ("pyautogui.click(600, 10)", "off the 512x384 screen"),
        ("pyautogui.write('one\ntwo')", "cannot be read"),
        ("import pyautogui", "holds no call"),
        (f"pyautogui.click({'-' * 900}1, 2)", "cannot be read"),
        (f"pyautogui{'.a' * 3000}(1)", "cannot be read|not allowed|only"),
        ("pyautogui.click(1, 2)\n" * (MAX_CALLS + 1), "at most"),
        ("for x in range(9): pyautogui.click(x, x)", "only|no action|literal"),
    ],
)
def test_anything_else_is_refused_with_the_reason(action, why):
    with pytest.raises(EnvError, match=why) as caught:
        read(action)
    assert caught.value.kind is ErrorKind.TASK


def test_text_that_is_copied_and_pasted_is_one_action():
    paste = "import pyperclip\npyperclip.copy('é 日本')\npyautogui.hotkey('ctrl', 'v')"
    code = f"{paste}\npyautogui.keyDown('shift')"
    assert read_program(code, (640, 480), 0.0) == [
        Action(kind="paste", text="é 日本"),
        Action(kind="key_down", keys=("shift",)),
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("pyperclip.copy('a')", "paste it in the same step"),
        ("pyperclip.copy(1)\npyautogui.hotkey('ctrl', 'v')", "text must be"),
        ("pyperclip.copy(open('x').read())\npyautogui.hotkey('ctrl', 'v')", "one text in quotes"),
    ],
)
def test_a_clipboard_is_used_for_a_paste_alone(code, words):
    with pytest.raises(EnvError, match=words):
        read_program(code, (640, 480), 0.0)
