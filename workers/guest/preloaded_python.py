"""A Python that is loaded already: `python -c CODE` by forking it, 5 ms instead of 60 (under emulation 1 s).

Agents of OSWorld's kind do everything through `python -c "import pyautogui; ..."`. The interpreter is forked
from the agent, imports what such code needs, opens no display, and forks once per program. Our own tools
(screenshot, accessibility tree) run the same way, so that a heavy one never holds up the agent.
"""

import asyncio
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
import types
from dataclasses import dataclass, field

from workers.guest import kernel_calls
from workers.guest.kernel_calls import die_with_parent
from workers.guest.program_space import Door

PRELOADED = ("pyautogui", "Xlib.ext.xfixes", "workers.guest.screenshot")
"""Loaded before the first request; one that is not installed is left to the program that asks for it."""
MAX_CODE = 64 << 10
"""Longer code is run by a Python of its own: one message carries it."""
MAX_MESSAGE = 1 << 20
START_LIMIT_S = 60.0
"""Under emulation on a busy machine the imports before the first program take that long."""


@dataclass
class Job:
    """One running program; looks like a Popen to its waiter."""

    pid: int
    returncode: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        """End it and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class PreloadedPython:
    """The agent's handle: starts the process on first use, hears when programs end."""

    def __init__(self, shim: str, more: tuple[str, ...] = ()) -> None:
        """`more`: further modules to load."""
        self._shim = shim
        self._modules = PRELOADED + more
        self._socket: socket.socket | None = None
        self._jobs: dict[int, Job] = {}
        self._starting: asyncio.Future[Job] | None = None
        self._turn = asyncio.Lock()
        self.pid = 0

    def forget(self) -> None:
        """Its process was ended with everything else: start anew on the next use."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
        self._socket, self.pid = None, 0
        self._lose("the desktop was reset")

    def warm_up(self) -> None:
        """Start the process now instead of on first use. Needs the running loop."""
        if self._socket is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            _become_interpreter(theirs, self._shim, self._modules)
        theirs.close()
        ours.setblocking(False)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)

    async def start(self, request: dict, stdout: int, stderr: int) -> Job:
        """Run {"code"} or {"tool"} with {"arguments", "env", "cwd"}. Raises OSError when it has ended."""
        async with self._turn:
            self.warm_up()
            assert self._socket is not None
            self._starting = asyncio.get_running_loop().create_future()
            # A message of this size fits into the socket's buffer, so this does not block.
            socket.send_fds(self._socket, [json.dumps(request).encode()], [stdout, stderr])
            try:
                async with asyncio.timeout(START_LIMIT_S):
                    return await self._starting
            finally:
                self._starting = None

    def _hear(self) -> None:
        """Called by the loop when the process has said something."""
        assert self._socket is not None
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.forget()
            return
        said = json.loads(data)
        if "started" in said:
            job = self._jobs[said["started"]] = Job(said["started"])
            if self._starting is not None and not self._starting.done():
                self._starting.set_result(job)
        elif said["ended"] in self._jobs:
            job = self._jobs.pop(said["ended"])
            job.returncode = said["code"]
            job.ended.set()

    def _lose(self, why: str) -> None:
        for job in self._jobs.values():
            job.returncode = -signal.SIGKILL
            job.ended.set()
        self._jobs.clear()
        if self._starting is not None and not self._starting.done():
            self._starting.set_exception(ConnectionResetError(why))


def _become_interpreter(requests: socket.socket, shim: str, modules: tuple[str, ...]) -> None:
    """Turn this fork of the agent into the interpreter; never returns."""
    try:
        die_with_parent()
        os.setsid()  # a signal for the agent's group is none for this one
        kept = requests.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, 4096)
        signal.set_wakeup_fd(-1)
        if shim not in sys.path:
            sys.path.insert(1, shim)
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()  # a collection in a fork would copy every page that it looks at
        _serve(requests)
    except BaseException:  # noqa: BLE001 - a fork must never fall back into the agent's own code
        traceback.print_exc()
    finally:
        os._exit(1)


def _serve(requests: socket.socket) -> None:
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    sources: list[socket.socket | int] = [requests, wake_read]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _report_ended(requests)
        if requests in ready:
            data, streams, _flags, _address = socket.recv_fds(requests, MAX_MESSAGE, 2)
            if not data:
                os._exit(0)
            request = json.loads(data)
            door = Door(**request["door"]) if request.get("door") else None
            with kernel_calls.children_go_to(door.first) if door else contextlib.nullcontext():
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    requests.close()
                    os.close(wake_read)
                    os.close(wake_write)
                    _become_program(request, door, *streams)
            for stream in streams:
                os.close(stream)
            requests.send(json.dumps({"started": pid}).encode())


def _report_ended(requests: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        requests.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def _become_program(request: dict, door: "Door | None", stdout: int, stderr: int) -> None:
    """Run one program in this fresh child and end with its exit code."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.closerange(3, max(stdout, stderr, nothing) + 1)
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()  # the time zone was read before the fork
        if door:
            door.pass_through(request["cwd"])
        else:
            os.chdir(request["cwd"])
        if "tool" in request:
            sys.argv = [request["tool"], *request["arguments"]]
            code = importlib.import_module(f"workers.guest.{request['tool']}").main(request["arguments"])
        else:
            code = run_code(request["code"], request["arguments"], is_safe="PYTHONSAFEPATH" in os.environ)
    except BaseException:  # noqa: BLE001 - the program's own end, whatever it is, becomes its exit code
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # waits for its threads, as Python's own end does
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) and 0 <= code < 256 else 1)


def run_code(text: str, arguments: list[str], *, is_safe: bool = False) -> int:
    """What `python3 -c TEXT ARGUMENTS...` does; its exit code. `is_safe`: its folder holds no modules."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = ["-c", *arguments]
    if is_safe:
        del sys.path[0]
    else:
        sys.path[0] = ""
    module.__dict__["__builtins__"] = __builtins__
    try:
        exec(compile(text, "<string>", "exec"), module.__dict__)
    except SystemExit as exc:
        if exc.code is None or isinstance(exc.code, int):
            return exc.code or 0
        sys.stderr.write(f"{exc.code}\n")
        return 1
    except BaseException as exc:  # noqa: BLE001 - printed, as Python does it, without our own frame
        trace = exc.__traceback__.tb_next if exc.__traceback__ else None
        traceback.print_exception(type(exc), exc, trace)
        return 1
    return 0
