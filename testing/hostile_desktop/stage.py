"""One real desktop with an attack in it, and the canaries around it that tell a success."""

# ruff: noqa: E501 - an attack is one row: its name, program, verdict and defence

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.contracts.types import Task
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.driven_desktop import Desktop
from workers.desktops.x11.console import X11Console
from workers.desktops.x11.desktop import X11Desktop
from workers.desktops.x11.provider import X11Provider
from workers.tasks import prepare_and_score
from workers.tasks.errors import EvaluatorError

SPEC = DesktopSpec(home_mb=32, memory_mb=512, max_processes=96)
RIGHT, WRONG = "right", "wrong"
ANSWER = "~/answer.txt"
ANSWER_FILE = {"type": "vm_file", "path": ANSWER}
ANSWER_LIMIT_S = 15.0
READY_LIMIT_S = 15.0
PRELUDE = """
import ctypes, os, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *[a if isinstance(a, (bytes, ctypes.Structure)) else ctypes.c_long(a) for a in arguments])
def processes():
    found = []
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) != os.getpid():
            try: found.append((int(name), open(f'/proc/{name}/cmdline', 'rb').read().replace(b'\\0', b' ').decode()))
            except OSError: pass
    return found
def pids_of(part): return [pid for pid, line in processes() if part in line and 'hostile' not in line]
def report(text):
    with open('/home/user/report.new', 'w') as file: file.write(str(text))
    os.rename('/home/user/report.new', '/home/user/report')
def tried(function):
    try: report('won' if function() is not False else 'lost')
    except Exception as error: report(f'lost: {error!r}')
"""


@dataclass
class Canaries:
    """What an attack must not reach: listeners and a secret of this machine."""

    folder: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    heard: list[str] = field(default_factory=list)
    addresses: dict[str, Any] = field(default_factory=dict)

    @property
    def secret_path(self) -> Path:
        return self.folder / "secret.txt"


@contextlib.contextmanager
def canaries() -> Iterator[Canaries]:
    """Listeners on this machine and a file with a secret."""
    with tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp") as name, contextlib.ExitStack() as stack:
        found = Canaries(Path(name))
        found.secret_path.write_text(found.secret)
        abstract = f"\0deskhand-{found.secret[:8]}"
        found.addresses = {"abstract": abstract[1:], "path": str(found.folder / "canary.sock")}
        for kind, family, address in (
            ("tcp", socket.AF_INET, ("127.0.0.1", 0)),
            ("tcp6", socket.AF_INET6, ("::1", 0)),
            ("abstract", socket.AF_UNIX, abstract),
            ("path", socket.AF_UNIX, found.addresses["path"]),
        ):
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen()
            if family != socket.AF_UNIX:
                found.addresses[kind] = listener.getsockname()[1]
            threading.Thread(target=_hear, args=(listener, kind, found.heard), daemon=True).start()
        yield found


def _hear(listener: socket.socket, kind: str, heard: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()
            heard.append(kind)


class Attacked(Desktop):
    """What a verdict may ask of any desktop under attack."""

    home = "/home/user"
    canary: Canaries
    answer_limit_s = ANSWER_LIMIT_S
    ready_limit_s = READY_LIMIT_S
    slow_command_s = 0.7
    """How long an evaluator's command sleeps that an attack is to find."""

    @property
    def weakened(self) -> frozenset[str]:
        """The defences that are left out."""
        raise NotImplementedError

    def attack(self, program: str) -> None:
        """Start the program among the trajectory's and wait until it reports, or its time is over."""
        program = program.replace("@sleep", f"sleep {self.slow_command_s:g}")
        self.agent.put("~/hostile.py", (PRELUDE + program).encode())
        self.agent.launch(["/usr/bin/python3", "/home/user/hostile.py"])
        deadline = time.monotonic() + self.ready_limit_s
        while time.monotonic() < deadline:
            time.sleep(0.05)
            try:
                if self.agent.get("~/report") is not None:
                    return
            except EnvError:
                return  # it does not answer any more, which a verdict may be about

    def report(self) -> str:
        try:
            return (self.agent.get("~/report") or b"").decode(errors="replace")
        except EnvError:
            return ""

    def run(self, command: str) -> str:
        """Output of a command of the next or present trajectory; "" when there is no answer."""
        try:
            return self.agent.execute(command, shell=True, timeout_s=self.answer_limit_s).output.strip()
        except EnvError:
            return ""

    def score(self, command: str | list[str] = "", *, shell: bool = False) -> float:
        """What the evaluator says of a file that is wrong: by reading it, or by a command."""
        result = {"type": "vm_command_line", "command": command, "shell": shell}
        return self._score([(result if command else ANSWER_FILE, RIGHT)])

    def score_parts(self, *contents: str) -> float:
        """What it says of a file that is to have each of these contents."""
        parts = [(ANSWER_FILE, content) for content in contents]
        if "reading" in self.weakened:  # as it was: each part looks for itself
            return min(self._score([part]) for part in parts)
        return self._score(parts)

    def _score(self, parts: list[tuple[dict[str, Any], str]]) -> float:
        evaluator = {
            "func": ["compare_text_file"] * len(parts),
            "result": [result for result, _ in parts],
            "expected": [{"type": "inline", "content": content} for _, content in parts],
            "options": [{"ignore_blanks": True}] * len(parts),
        }
        task = Task(task_id="hostile", instruction="Write right.", config=[], evaluator=evaluator)
        try:
            return prepare_and_score.evaluate(task, self, None)
        except (EnvError, EvaluatorError):
            return -1.0  # an error is never a score

    def wait(self, seconds: float) -> None:
        """Let an attack that has no end of its own go on."""
        time.sleep(seconds)

    def close(self) -> None:
        """Disconnect, as the holder of a lease does; the next call connects anew."""
        raise NotImplementedError

    def reset(self) -> bool:
        """As the desk host does it; False when it says that the desktop must be rebuilt."""
        raise NotImplementedError


class Stage(Attacked):
    """An X11 desktop under attack."""

    def __init__(self, machine: X11Desktop, canary: Canaries) -> None:
        self.machine = machine
        self.canary = canary
        self._agent = AgentClient(machine.endpoints.agent, timeout_s=ANSWER_LIMIT_S)
        self._console: X11Console | None = None
        self.first_window_manager = self.outer_pids("openbox")

    @property
    def provider(self) -> str:
        return "x11"

    @property
    def weakened(self) -> frozenset[str]:
        return self.machine.weakened

    @property
    def agent(self) -> AgentClient:
        return self._agent

    @property
    def console(self) -> X11Console:
        if self._console is None:
            self._console = X11Console(self.machine.endpoints)
        return self._console

    def close(self) -> None:
        self._agent.close()
        if self._console is not None:
            self._console.close()
        self._console = None

    def reset(self) -> bool:
        self.close()
        try:
            asyncio.run(self.machine.reset())
        except EnvError:
            return False
        return True

    def outer_environments(self) -> bytes:
        """Environments of all processes of the desktop, as the kernel tells this machine."""
        found = b""
        for pid in _family(self.machine.pid):
            with contextlib.suppress(OSError):
                found += Path(f"/proc/{pid}/environ").read_bytes()
        return found

    def outer_pids(self, name: str) -> list[int]:
        """Processes of this name in the desktop, as this machine sees them."""
        found = []
        for pid in _family(self.machine.pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    found.append(pid)
        return found

    def count(self) -> int:
        """Processes and threads in the desktop, counted from outside."""
        return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in _family(self.machine.pid) if _lives(pid))


def _lives(pid: int) -> bool:
    return os.path.isdir(f"/proc/{pid}/task")


def _family(pid: int) -> list[int]:
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                found += _family(int(child))
    return found


@dataclass(frozen=True)
class Attack:
    """A program, what tells its success, and the defence without which it succeeds."""

    name: str
    program: str
    won: Callable[[Any], bool]
    """Asked of its stage."""
    without: str


@asynccontextmanager
async def stage(canary: Canaries, without: str = ""):
    """A fresh desktop with the wrong answer on it, with one defence left out if named."""
    weakened = frozenset(without.split("+")) - {""}
    name = f"h{secrets.token_hex(3)}"
    machine = await X11Provider(weakened=weakened).create(name, SPEC, canary.folder / name)
    there = Stage(machine, canary)
    try:
        there.agent.put(ANSWER, WRONG.encode())
        yield there
    finally:
        there.close()
        await machine.destroy()
