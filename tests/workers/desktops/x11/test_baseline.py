"""What a fresh display is remembered as, on a real X server whose window manager starts late."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from Xlib import Xatom

from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.display_reset import take_baseline

pytestmark = pytest.mark.desktop

START = "import os, time; time.sleep(0.5); os.execvp('openbox', ['openbox', '--sm-disable'])"


@pytest.fixture
def display() -> Iterator[X11Display]:
    """A bare X server without a window manager."""
    read, write = os.pipe()
    with subprocess.Popen(
        [
            "Xvnc",
            "-displayfd",
            str(write),
            "-SecurityTypes",
            "None",
            "-rfbport",
            "-1",
            "-geometry",
            "512x384",
        ],
        pass_fds=(write,),
        stderr=subprocess.DEVNULL,
    ) as server:
        os.close(write)
        with os.fdopen(read) as answer:
            number = answer.readline().strip()
        x = X11Display(f"/tmp/.X11-unix/X{number}")
        yield x
        server.terminate()
        server.wait()
        x.close()


def test_a_display_is_fresh_once_its_window_manager_has_set_all_properties(display):
    """openbox announces itself, and the work area, before it names its desktops: stopped between them."""
    for name, kind in (("_NET_SUPPORTING_WM_CHECK", Xatom.WINDOW), ("_NET_WORKAREA", Xatom.CARDINAL)):
        display.root.change_property(display.display.intern_atom(name), kind, 32, [display.root.id])
    environment = {**os.environ, "DISPLAY": f":{display.socket_path.rpartition('X')[2]}"}
    with subprocess.Popen([sys.executable, "-c", START], env=environment) as window_manager:
        try:
            baseline = take_baseline(display, "#202020")
        finally:
            window_manager.terminate()
    assert "_NET_DESKTOP_NAMES" in baseline.properties
