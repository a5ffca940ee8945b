"""The process that our own programs are forked from."""

import os
import socket

from workers.guest.panel_zygote import fork_serving


def needs_a_missing_module(_requests: socket.socket) -> None:
    raise ModuleNotFoundError("No module named 'tkinter'")


def test_a_zygote_that_cannot_serve_says_why(capfd) -> None:
    pid, ours = fork_serving(needs_a_missing_module)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert ours.recv(1) == b"", "its end is closed"
    ours.close()
    assert "No module named 'tkinter'" in capfd.readouterr().err
