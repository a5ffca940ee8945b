"""Nothing stays pressed: neither what a person held when their connection ended, nor what a program did."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest
from Xlib import X
from Xlib.ext import xtest

from training.contracts.types import Action
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.display_connection import X11Display

pytestmark = pytest.mark.desktop
SHIFT, CTRL, LETTER = 0xFFE1, 0xFFE3, ord("a")
LEFT, MIDDLE, RIGHT = 1, 2, 4
ANY_BUTTON = 0x1F00


def person(desktop: DesktopEnv, keys: tuple[int, ...], buttons: int) -> socket.socket:
    """A person at the VNC server who holds these."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(desktop.lease.desktop.endpoints.vnc)
    server.recv(12)
    server.sendall(b"RFB 003.008\n")
    server.recv(16)
    server.sendall(b"\x01")
    server.recv(4)
    server.sendall(b"\x01")
    told = b""
    while len(told) < 24:
        told += server.recv(1024)
    for keysym in keys:
        server.sendall(struct.pack(">BBHI", 4, 1, 0, keysym))
    server.sendall(struct.pack(">BBHH", 5, buttons, 100, 100))
    return server


def down(desktop: DesktopEnv) -> tuple[int, int]:
    """How many keys, and which buttons, the display has as pressed."""
    display = X11Display(desktop.lease.desktop.endpoints.display)
    try:
        keys = sum(bits.bit_count() for bits in display.display.query_keymap())
        return keys, display.root.query_pointer().mask & ANY_BUTTON
    finally:
        display.close()


def wait_for(desktop: DesktopEnv, holds: Callable[[tuple[int, int]], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds(down(desktop)):
        assert time.monotonic() < deadline, down(desktop)
        time.sleep(0.02)


HELD = [
    ((SHIFT,), 0),
    ((), LEFT),
    ((CTRL, LETTER), RIGHT),
    ((), LEFT | MIDDLE | RIGHT),
    ((SHIFT, CTRL), LEFT),
    ((), 8),
]


@pytest.mark.parametrize(("keys", "buttons"), HELD)
def test_what_a_person_held_is_up_when_the_agent_goes_on(desktop, keys, buttons):
    server = person(desktop, keys, buttons)
    wait_for(desktop, lambda seen: seen != (0, 0))
    server.close()
    desktop.console.let_go()
    assert down(desktop) == (0, 0)


@pytest.mark.parametrize(("keys", "buttons"), HELD)
def test_what_a_person_held_is_up_after_the_reset(desktop, keys, buttons):
    server = person(desktop, keys, buttons)
    wait_for(desktop, lambda seen: seen != (0, 0))
    server.close()
    assert not desktop.reset().rebuilt
    assert down(desktop) == (0, 0)
    before = desktop.observe()
    desktop.act(Action(kind="move", x=300, y=200))
    assert desktop.observe().raw_digest == before.raw_digest, "no drag selects anything"


def test_what_a_worker_pressed_before_it_was_killed_is_up_after_the_reset(desktop):
    worker = X11Display(desktop.lease.desktop.endpoints.display)
    for event, detail in ((X.KeyPress, 50), (X.KeyPress, 66), (X.ButtonPress, 1), (X.ButtonPress, 9)):
        xtest.fake_input(worker.display, event, detail)
    worker.display.sync()
    worker.display.display.socket.close()  # as the kernel does it
    assert down(desktop) != (0, 0)
    assert not desktop.reset().rebuilt
    assert down(desktop) == (0, 0)
    desktop.agent.launch(["xterm", "-e", "cat > typed"])
    desktop.wait_for_window("xterm")
    desktop.act(Action(kind="type", text="small\n"))
    deadline = time.monotonic() + 30
    while not (typed := desktop.agent.get("~/typed")) and time.monotonic() < deadline:
        desktop.observe()
    assert typed == b"small\n"
