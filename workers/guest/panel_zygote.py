"""Start our own programs by forking a process that has Python and Tk loaded already: 5 ms instead of 60.

The zygote is forked from the agent before anything else (no threads, no loop). It never opens a
display, so it holds nothing of a trajectory. One JSON datagram asks for one program.
"""

import contextlib
import ctypes
import functools
import importlib
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable

from workers.guest import kernel_calls
from workers.guest.kernel_calls import die_with_parent
from workers.guest.program_space import Door

PROGRAMS = {"deskhand-panel": "task_form_window", "deskhand-widgets": "widgets_window"}
"""Name -> module; its GTK becomes whole in the fork alone, since it opens the display that it finds."""

ANSWER_LIMIT_S = 10.0


def fork_serving(serve: Callable[[socket.socket], object]) -> tuple[int, socket.socket]:
    """Fork a process that serves its end of a socket; its pid, and our end. It ends with us at the latest."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            die_with_parent()
            serve(theirs)
            code = 0
        except Exception:  # noqa: BLE001 - a process's edge: the desktop's log says what was missing
            traceback.print_exc()
        finally:
            os._exit(code)  # a fork must never fall back into the agent's own code
    theirs.close()
    ours.settimeout(ANSWER_LIMIT_S)
    return pid, ours


class PanelZygote:
    """The agent's handle on its zygote."""

    def __init__(self) -> None:
        self.pid, self._socket = fork_serving(_serve)

    def start(
        self, program: str, arguments: list[str], env: dict[str, str], cwd: str, door: "dict | None" = None
    ) -> int:
        """Start a program of PROGRAMS; returns its pid. Raises OSError when the zygote is gone."""
        request = {"program": program, "arguments": arguments, "env": env, "cwd": cwd, "door": door}
        self._socket.send(json.dumps(request).encode())
        answer = self._socket.recv(64)
        if not answer:
            raise ConnectionResetError("the zygote has ended")
        return int(answer)


def _serve(requests: socket.socket) -> None:
    """Fork once per request, until the agent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    importlib.import_module("workers.guest.task_form_window")  # brings Tk, so that every fork has it

    with contextlib.suppress(OSError):
        ctypes.CDLL("libfontconfig.so.1").FcInit()  # reads the font caches once instead of in every fork
    while data := requests.recv(1 << 20):
        request = json.loads(data)
        door = Door(**request["door"]) if request["door"] else None
        if PROGRAMS[request["program"]] == "widgets_window":
            with contextlib.suppress(ImportError, OSError, ValueError):  # the fork says what is missing
                _load_gtk()
        with kernel_calls.children_go_to(door.first) if door else contextlib.nullcontext():
            pid = os.fork()
            if pid == 0:
                requests.close()
                _become(PROGRAMS[request["program"]], request, door)
        requests.send(str(pid).encode())


@functools.cache
def _load_gtk() -> None:
    """The libraries of GTK, without opening a display: every later fork starts in half of the time."""
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import Gio, GLib, GObject  # noqa: F401 - read here, so that every fork has them

    gi.Repository.get_default().require("Gtk", "3.0")
    ctypes.CDLL("libgtk-3.so.0")


def _become(module: str, request: dict, door: "Door | None") -> None:
    """Run one program in this fresh child and end with its exit code."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()  # the time zone was read before the fork
        if door:
            door.pass_through(request["cwd"])
        os.chdir(request["cwd"])
        code = importlib.import_module(f"workers.guest.{module}").main(request["arguments"])
    except Exception:  # noqa: BLE001 - a process's edge
        traceback.print_exc()
    finally:
        os._exit(code)
