"""Ctrl+click, Shift+drag and a held key of a person solve a task again, on a fresh desktop, as actions."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable

import pytest

from testing.rfb_messages import encodings, greeted
from tests.workers.desktops.x11.test_held_input import down, person
from training.contracts.types import Action, Task
from webapp.screens.rfb.gestures_to_actions import Gesture, GestureReader
from workers.desktops.leased_desktop import DesktopEnv
from workers.environments.agent_hands import AgentHands
from workers.tasks import prepare_and_score

pytestmark = [pytest.mark.desktop, pytest.mark.slow]
BOARD = """
import json, os, time, tkinter
root = tkinter.Tk()
root.title("Board")
root.geometry("300x300+60+60")
found = {"rows": [], "dragged": False, "held": False}
def save():
    with open("found.tmp", "w") as file:
        json.dump(found, file)
    os.replace("found.tmp", "found.json")
rows = tkinter.Listbox(root, selectmode="extended", font=("DejaVu Sans", 14), height=4)
rows.insert(0, "One", "Two", "Three", "Four")
rows.place(x=0, y=0, width=300, height=120)
def chosen(event):
    found["rows"] = list(rows.curselection())
    save()
rows.bind("<<ListboxSelect>>", chosen)
field = tkinter.Canvas(root, background="#ccd")
field.place(x=0, y=130, width=300, height=170)
began = []
field.bind("<Shift-ButtonPress-1>", lambda event: began.append((event.x, event.y)))
def dropped(event):
    found["dragged"] = bool(began) and event.x - began[-1][0] > 100
    save()
field.bind("<Shift-ButtonRelease-1>", dropped)
since, ending = [], []
def pressed(event):
    if ending:
        root.after_cancel(ending.pop())
    since.append(time.monotonic())
def ended():
    ending.clear()
    found["held"] = found["held"] or time.monotonic() - since[0] > 1.0
    since.clear()
    save()
def released(event):
    ending.append(root.after(90, ended))
root.bind_all("<KeyPress-F5>", pressed)
root.bind_all("<KeyRelease-F5>", released)
save()
root.focus_force()
root.mainloop()
"""
RULES = [
    {"key": ["rows"], "method": "eq", "ref": [0, 2]},
    {"key": ["dragged"], "method": "eq", "ref": True},
    {"key": ["held"], "method": "eq", "ref": True},
]
TASK = Task(
    task_id="board.1",
    instruction="Choose One and Three, drag with Shift over the field, and hold F5 for more than a second.",
    config=(
        {"type": "write_file", "parameters": {"path": "~/board.py", "content": BOARD}},
        {"type": "launch", "parameters": {"command": "cd; python3 board.py", "shell": True}},
        {"type": "activate_window", "parameters": {"window_name": "Board"}},
    ),
    evaluator={
        "func": "check_json",
        "result": {"type": "vm_file", "path": "~/found.json"},
        "expected": {"type": "rule", "rules": {"expect": RULES}},
    },
)
CTRL, SHIFT, F5 = 0xFFE3, 0xFFE1, 0xFFC2


class Person:
    """A person at the desktop by VNC, whose input passes the web server's filter and is read there."""

    def __init__(self, desktop: DesktopEnv, slower: float) -> None:
        self._slower = slower
        self._server: socket.socket = person(desktop, (), 0)
        self._server.sendall(encodings(0))  # QEMU takes pointers as mice until it hears what a browser reads
        self._filter = greeted(wants_control=True)
        self._filter.may_act = True
        self._reader = GestureReader()
        self._gestures: dict[int, Gesture] = {}

    def _send(self, message: bytes, pause_s: float = 0.06) -> None:
        heard = self._filter.hear(message)
        self._server.sendall(heard.forward)
        for event in heard.inputs:
            self._keep(self._reader.read(event, time.time()))
        time.sleep(pause_s * self._slower)
        self._keep(self._reader.tick(time.time()))

    def _keep(self, gestures: list[Gesture]) -> None:
        self._gestures |= {gesture.index: gesture for gesture in gestures}

    def key(self, keysym: int, *, is_down: bool, pause_s: float = 0.06) -> None:
        self._send(struct.pack(">BBHI", 4, is_down, 0, keysym), pause_s)

    def point(self, buttons: int, x: int, y: int) -> None:
        self._send(struct.pack(">BBHH", 5, buttons, x, y))

    def click(self, x: int, y: int) -> None:
        self.point(0, x, y)
        self.point(1, x, y)
        self.point(0, x, y)
        time.sleep(0.5 * self._slower)

    def leave(self) -> list[Action]:
        self._keep(self._reader.finish(time.time()))
        self._server.close()
        return [self._gestures[index].action for index in sorted(self._gestures)]


def solve_by_hand(desktop: DesktopEnv, slower: float = 1.0) -> list[Action]:
    """`slower`: an emulated machine follows later."""
    hand = Person(desktop, slower)
    window = desktop.wait_for_window("Board")
    x, y = window.x, window.y
    hand.click(x + 100, y + 12)
    hand.key(CTRL, is_down=True)
    hand.click(x + 100, y + 60)
    hand.key(CTRL, is_down=False)
    hand.key(SHIFT, is_down=True)
    hand.point(1, x + 40, y + 200)
    for step in range(1, 6):
        hand.point(1, x + 40 + 40 * step, y + 200)
    hand.point(0, x + 240, y + 200)
    hand.key(SHIFT, is_down=False)
    hand.key(F5, is_down=True, pause_s=1.4)
    hand.key(F5, is_down=False, pause_s=0.3)
    return hand.leave()


def replayed(
    desktop: DesktopEnv,
    actions: list[Action],
    held: Callable[[DesktopEnv], tuple[int, int]] = down,
) -> float:
    desktop.reset()
    prepare_and_score.setup(TASK, desktop)
    hands = AgentHands(desktop)
    for action in actions:
        assert hands.do([action], TASK.screen).error is None
        desktop.observe()
    hands.let_go()
    assert held(desktop) == (0, 0)
    return prepare_and_score.evaluate(TASK, desktop, None)


def test_recorded_gestures_solve_their_task_on_a_fresh_desktop(desktop):
    prepare_and_score.setup(TASK, desktop)
    actions = solve_by_hand(desktop)
    assert prepare_and_score.evaluate(TASK, desktop, None) == 1.0, desktop.agent.get("~/found.json")
    kinds = [(action.kind.value, action.modifiers, action.seconds > 1) for action in actions]
    assert kinds == [
        ("click", (), False),
        ("click", ("ctrl",), False),
        ("drag", ("shift",), False),
        ("key", (), True),
    ]
    stored = [json.loads(action.model_dump_json(exclude_defaults=True)) for action in actions]
    assert replayed(desktop, [Action.model_validate(action) for action in stored]) == 1.0
    as_before = [action.model_copy(update={"modifiers": (), "seconds": 0.0}) for action in actions]
    assert replayed(desktop, as_before) == 0.0
    held = [
        Action(kind="key_down", keys=("ctrl",)),
        actions[1].model_copy(update={"modifiers": ()}),
        Action(kind="key_up", keys=("ctrl",)),
        Action(kind="mouse_up"),
    ]
    assert replayed(desktop, [actions[0], *held, *actions[2:]]) == 1.0
