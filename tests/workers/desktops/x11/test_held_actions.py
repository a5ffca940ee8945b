"""Modifiers, holds, counted presses and pasted text: what a program on a real desktop receives."""

from __future__ import annotations

import json

import pytest

from tests.workers.desktops.test_desktop_actions import eventually, open_editor, saved_text
from tests.workers.desktops.x11.test_held_input import down
from training.contracts.types import Action
from workers.desktops.leased_desktop import DesktopEnv

pytestmark = pytest.mark.desktop
EVENTS = """
import json, sys, tkinter
root = tkinter.Tk()
root.title("Events")
root.geometry("300x200+100+100")
seen = []
def note(kind):
    def handle(event):
        what = event.keysym if kind.startswith("key") else event.num
        seen.append([kind, what, event.state & 0x4D, event.time])
        with open("seen.tmp", "w") as file:
            json.dump(seen, file)
        import os; os.replace("seen.tmp", "seen.json")
    return handle
for kind, name in (("key", "KeyPress"), ("keyup", "KeyRelease"), ("down", "Button"), ("up", "ButtonRelease")):
    root.bind("<%s>" % name, note(kind))
root.focus_force()
root.mainloop()
"""
SHIFT, CTRL, ALT = 1, 4, 8


@pytest.fixture
def events(desktop):
    """A program that notes what it receives; call it for (what, button or key, modifiers)."""
    desktop.agent.put("~/events.py", EVENTS.encode())
    desktop.agent.launch(["sh", "-c", "cd; exec /usr/bin/python3 -s events.py"])
    desktop.wait_for_window("Events")
    return lambda count: _seen(desktop, count)


def _seen(desktop: DesktopEnv, count: int) -> list[list]:
    def read() -> list[list]:
        desktop.observe()
        return json.loads(desktop.agent.get("~/seen.json") or b"[]")

    return eventually(read, lambda found: len(found) >= count)


def test_a_click_with_modifiers_arrives_with_them_held(desktop, events):
    desktop.act(Action(kind="click", x=200, y=200, modifiers=("ctrl", "shift")))
    seen = [row[:3] for row in events(6)]
    assert seen[2:4] == [["down", 1, SHIFT | CTRL], ["up", 1, SHIFT | CTRL]]
    assert [row[1] for row in seen] == ["Control_L", "Shift_L", 1, 1, "Shift_L", "Control_L"]
    assert down(desktop) == (0, 0)


def test_what_goes_down_stays_down_until_it_is_let_go(desktop, events):
    desktop.act(Action(kind="key_down", keys=("shift",)))
    desktop.act(Action(kind="mouse_down", x=200, y=200, button="right"))
    assert [bool(part) for part in down(desktop)] == [True, True]
    desktop.act(Action(kind="key", keys=("shift", "Left")))  # a chord with it does not end the hold
    assert down(desktop)[0] == 1
    desktop.act(Action(kind="mouse_up", button="right"))
    desktop.act(Action(kind="key_up", keys=("shift",)))
    assert down(desktop) == (0, 0)
    seen = [row[:3] for row in events(6)]
    assert ["down", 3, SHIFT] in seen
    assert ["key", "Left", SHIFT] in seen


def test_nothing_stays_down_after_letting_go_or_a_reset(desktop):
    for clean in (desktop.console.let_go, desktop.reset):
        desktop.act(Action(kind="key_down", keys=("ctrl", "a")))
        desktop.act(Action(kind="mouse_down", x=300, y=300))
        assert down(desktop)[0] == 2
        clean()
        assert down(desktop) == (0, 0)
        desktop.act(Action(kind="key", keys=("ctrl", "a")))  # and the next chord presses Ctrl anew
        assert down(desktop) == (0, 0)


def test_a_key_is_held_for_a_time_and_comes_again(desktop, events):
    desktop.act(Action(kind="key", keys=("Right",), seconds=1.1))
    seen = events(8)
    assert [row[0] for row in seen].count("key") > 3
    assert 1000 <= seen[-1][3] - seen[0][3] <= 1800


def test_keys_and_clicks_are_counted(desktop, events):
    desktop.act(Action(kind="key", keys=("alt", "F7"), presses=3))
    desktop.act(Action(kind="right_click", x=200, y=200, presses=2))
    seen = [row[:2] for row in events(12)]
    assert seen.count(["key", "F7"]) == 3
    assert seen.count(["key", "Alt_L"]) == 1
    assert seen.count(["down", 3]) == 2


def test_a_terminal_is_pasted_into_by_its_own_keys(desktop):
    desktop.agent.launch(["xterm", "-e", "cat > typed"])
    desktop.wait_for_window("xterm")
    desktop.act(Action(kind="paste", text="żółw\n"))

    def read() -> bytes:
        desktop.observe()
        return desktop.agent.get("~/typed") or b""

    assert eventually(read, bool).decode() == "żółw\n"


def test_text_is_pasted_and_shift_selects(desktop):
    open_editor(desktop, "")
    text = "é 日本 😀 line\n"
    desktop.act(Action(kind="paste", text=text + "second"))
    assert saved_text(desktop, text + "second") == text + "second"
    desktop.act(Action(kind="key", keys=("shift", "Left"), presses=6))
    desktop.act(Action(kind="type", text="2"))
    assert saved_text(desktop, text + "2") == text + "2"
