"""A program changes the screen's size: pictures and coordinates follow it, and the reset undoes it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from training.contracts.types import Action
from workers.desktops.console_contract import ActionRefused
from workers.desktops.leased_desktop import DesktopEnv
from workers.environments.agent_hands import AgentHands

pytestmark = pytest.mark.desktop
XRANDR = """
import sys
from Xlib import display
from Xlib.ext import randr
d = display.Display()
root = d.screen().root
wanted = int(sys.argv[1]), int(sys.argv[2])
found = root.xrandr_get_screen_resources()
mode = next(m.id for m in found.modes if (m.width, m.height) == wanted)
crtc = found.crtcs[0]
outputs = list(d.xrandr_get_crtc_info(crtc, found.config_timestamp).outputs)
root.xrandr_set_screen_size(max(wanted[0], 2000), max(wanted[1], 2000), 500, 500)
d.xrandr_set_crtc_config(crtc, found.config_timestamp, 0, 0, mode, 1, outputs)
root.xrandr_set_screen_size(*wanted, 200, 150)
d.sync()
"""
RECORDER = """
import json, sys
from Xlib import X, display
d = display.Display()
s = d.screen().root.get_geometry()
w = d.screen().root.create_window(0, 0, s.width, s.height, 0, d.screen().root_depth, X.InputOutput,
    X.CopyFromParent, override_redirect=True, background_pixel=0x336699, event_mask=X.ButtonPressMask)
w.map()
d.sync()
open("ready", "w").close()
while True:
    e = d.next_event()
    if e.type == X.ButtonPress:
        with open("presses", "a") as out:
            out.write(json.dumps([e.root_x, e.root_y]) + chr(10))
"""


def resize(desktop: DesktopEnv, width: int, height: int) -> None:
    desktop.agent.put("~/resize.py", XRANDR.encode())
    done = desktop.agent.execute(f"/usr/bin/python3 ~/resize.py {width} {height}", shell=True)
    assert done.returncode == 0, done.error


@pytest.mark.parametrize("size", [(800, 600), (1280, 720), (640, 480)])
def test_pictures_and_coordinates_are_those_of_the_screen_as_it_is(desktop, size):
    small = desktop.observe()
    resize(desktop, *size)
    frame = desktop.observe()
    assert (small.width, small.height) == (512, 384)
    assert (frame.width, frame.height) == desktop.size == size
    desktop.agent.put("~/recorder.py", RECORDER.encode())
    desktop.agent.launch("cd ~ && exec /usr/bin/python3 recorder.py", shell=True)
    while desktop.agent.get("~/ready") is None:
        pass
    width, height = size
    edges = [[0, 300], [width - 1, height - 1], [0, 0], [width - 1, 0], [300, height - 1]]
    for x, y in edges:
        desktop.act(Action(kind="click", x=x, y=y))
        desktop.observe()
    for x, y in ((width, 10), (10, height), (-1, 10), (1000, 1074)):
        if not (0 <= x < width and 0 <= y < height):
            with pytest.raises(ActionRefused, match=f"off the screen of {width} x {height}"):
                desktop.act(Action(kind="click", x=x, y=y))
    seen = desktop.agent.get("~/presses").decode().splitlines()
    assert [json.loads(line) for line in seen] == edges


def test_a_screen_that_became_smaller_is_no_lost_desktop_and_the_reset_restores_it(desktop):
    resize(desktop, 1024, 768)
    assert desktop.observe().width == 1024
    resize(desktop, 640, 480)
    assert desktop.observe().width == 640
    desktop.reset()
    frame = desktop.observe()
    assert (frame.width, frame.height) == (512, 384)
    desktop.act(Action(kind="click", x=511, y=383))


@pytest.mark.parametrize(("x", "refused"), [(1279, False), (1280, True), (1900, True), (0, False)])
def test_an_action_is_measured_by_the_picture_and_not_by_the_task(x, refused):
    done: list[Action] = []
    hands = AgentHands(SimpleNamespace(act=done.append))
    tried = hands.do((Action(kind="click", x=x, y=5),), (1280, 720))
    assert (tried.error is not None) == refused
    assert len(done) == (not refused)
