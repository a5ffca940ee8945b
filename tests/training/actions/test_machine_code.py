"""Text for machines with pyautogui itself: it arrives or the program fails, never in silence."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable

import pytest

from training.actions.errors import ActionTextError
from training.actions.typable_text import typing_mistake
from training.actions.write.pyautogui_program import machine_code, pyautogui_code
from training.contracts.types import Action, ActionKind

PREFIX = "import pyautogui; import time; pyautogui.FAILSAFE = False; "
"""DesktopEnv's own, in front of every action."""


class Machine:
    """An editor behind pyautogui 0.9.54, which leaves out what its keyboard lacks, and a clipboard."""

    def __init__(self, window: str, keeps: Callable[[str], str] = lambda text: text) -> None:
        self.text, self.clipboard, self.pasted_by = "", "before", []
        self._window, self._keeps = window, keeps

    def run(self, code: str, monkeypatch) -> None:
        def hotkey(*keys: str) -> None:
            if keys == ("shift", ","):
                self.text += "<"
            else:
                self.pasted_by.append(keys)
                self.text += self.clipboard

        def write(text: str) -> None:
            self.text += "".join(char for char in text if char.isascii())

        def copy(text: str) -> None:
            self.clipboard = self._keeps(text)

        pyautogui = types.SimpleNamespace(hotkey=hotkey, write=write)
        pyperclip = types.SimpleNamespace(copy=copy, paste=lambda: self.clipboard)
        monkeypatch.setitem(sys.modules, "pyautogui", pyautogui)
        monkeypatch.setitem(sys.modules, "pyperclip", pyperclip)
        monkeypatch.setattr("time.sleep", lambda _: None)
        found = subprocess.CompletedProcess("", 0, stdout=self._window)
        monkeypatch.setattr("subprocess.run", lambda *_, **__: found)
        exec(compile(PREFIX + code, "action", "exec"), {})


def typed(text: str) -> Action:
    return Action(kind=ActionKind.TYPE, text=text)


TEXTS = [
    "żółw Čecha Řeka 你好 😀 €",
    "é 日本 😀",
    "naïve\tcafé\n",
    "a<é<b",
    'it\'s "ü" \\n {x}',
    "plain <text>\r\nwith lines",
    "שלום مرحبا",
    "e\u0301 \u200b …",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_arrives_in_an_editor(text, monkeypatch):
    machine = Machine('WM_CLASS(STRING) = "gedit", "Gedit"')
    machine.run(machine_code(typed(text)), monkeypatch)
    assert machine.text == text.replace("\r\n", "\n")


def test_a_terminal_is_pasted_into_by_its_own_keys(monkeypatch):
    machine = Machine('WM_CLASS(STRING) = "gnome-terminal-server", "Gnome-terminal"')
    machine.run(machine_code(typed("echo ž\n")), monkeypatch)
    assert (machine.text, machine.pasted_by) == ("echo ž\n", [("ctrl", "shift", "v")])


@pytest.mark.parametrize(
    ("window", "keeps"),
    [("gedit", lambda text: ""), ("gedit", lambda text: text[:-1]), ("xterm", lambda text: text)],
)
def test_a_machine_that_cannot_be_pasted_into_fails_the_action(window, keeps, monkeypatch):
    machine = Machine(window, keeps)
    with pytest.raises(AssertionError):
        machine.run(machine_code(typed("é")), monkeypatch)
    assert machine.text == ""


@pytest.mark.parametrize("keys", [("é",), ("ctrl", "я"), ("shift", "€")])
def test_a_key_that_pyautogui_does_not_have_is_refused_by_name(keys):
    with pytest.raises(ActionTextError, match=f"'{keys[-1]}'"):
        machine_code(Action(kind=ActionKind.KEY, keys=keys))


@pytest.mark.parametrize(
    "action",
    [
        typed("it's"),
        typed("a<b"),
        typed(""),
        Action(kind=ActionKind.KEY, keys=("ctrl", "s")),
        Action(kind=ActionKind.CLICK, x=0, y=0),
    ],
)
def test_all_else_is_said_as_to_our_own_desktops(action):
    assert machine_code(action) == pyautogui_code(action)


def test_pasted_text_cannot_become_code(monkeypatch):
    text = "é'); raise SystemExit; ('"
    machine = Machine("gedit")
    machine.run(machine_code(typed(text)), monkeypatch)
    assert machine.text == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a\x00", "U+0000"),
        ("\x1b[A", "U+001B"),
        ("\x7f", "U+007F"),
        ("\ud83d", "U+D83D"),
        ("é\x85", "U+0085"),
    ],
)
def test_what_no_keyboard_has_is_named(text, name):
    assert typing_mistake(text).startswith(name)


def test_text_of_any_script_can_be_typed():
    assert [typing_mistake(text) for text in TEXTS] == [None] * len(TEXTS)
