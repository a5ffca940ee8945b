"""The process that our own programs are forked from."""

import os
import socket
import subprocess

from workers.desktops.x11.desktop import SYSTEM_PYTHON
from workers.guest.panel_zygote import fork_serving

LOADED = """
import os
from workers.guest.panel_zygote import _load_gtk
_load_gtk()
with open("/proc/self/maps") as maps:
    print("libgtk-3" in maps.read(), len(os.listdir("/proc/self/task")))
"""


def needs_a_missing_module(_requests: socket.socket) -> None:
    raise ModuleNotFoundError("No module named 'tkinter'")


def test_a_zygote_that_cannot_serve_says_why(capfd) -> None:
    pid, ours = fork_serving(needs_a_missing_module)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert ours.recv(1) == b"", "its end is closed"
    ours.close()
    assert "No module named 'tkinter'" in capfd.readouterr().err


def test_gtk_is_loaded_without_a_display_and_leaves_one_thread_to_fork() -> None:
    command = [SYSTEM_PYTHON, "-s", "-c", LOADED]
    assert subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout == "True 1\n"
