"""The child process as the env worker sees it: started, called, ended.

    started -> ready -> (call)* -> closed
A child that dies, hangs or writes nonsense is an EnvError of kind infra; every end removes its folder.
"""

import contextlib
import fcntl
import itertools
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError
from workers.environments.osworld.child_messages import Failure, FailureKind, Message
from workers.processes.process_group import end_group
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind

REPOSITORY = Path(__file__).resolve().parents[3]
START_LIMIT_S = 120.0
"""Importing DesktopEnv takes 0.5 s with level lite and 15 s with level full, times a busy machine."""
END_LIMIT_S = 60.0
LOG_TAIL_BYTES = 1500
INHERITED = ("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Our own settings and secrets stay out of a process that runs code of task authors."""
OWN = {"TZ": "UTC", "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
"""Of every child, whatever its host has: evaluators reckon with dates."""
LOCK = "owner.lock"
ADDRESS = "desktop.address"
SOCKET = "desktop.sock"

Answer = TypeVar("Answer", bound=Message)
_numbers = itertools.count(1)


def raise_failure(call: str, failure: Failure) -> NoReturn:
    """Raise what `failure` of `call` means for the trajectory."""
    match failure.kind:
        case FailureKind.ACTION:
            raise ActionRefused(failure.message)
        case FailureKind.SETUP:
            raise SetupError(TaskErrorKind.TASK, failure.message)
        case FailureKind.EVALUATOR:
            raise EvaluatorError(TaskErrorKind.TASK, failure.message)
        case FailureKind.UNSUPPORTED if call == "evaluate":
            raise EvaluatorError(TaskErrorKind.UNSUPPORTED, failure.message)
        case FailureKind.UNSUPPORTED:
            raise SetupError(TaskErrorKind.UNSUPPORTED, failure.message)
    raise EnvError(f"OSWorld {call}: {failure.message}")


class OsworldProcess:
    """One child with one DesktopEnv. One thread at a time."""

    def __init__(
        self, python: Path, folders: Path, *, pass_on: Mapping[str, str], on_ask: Callable[[str], None]
    ) -> None:
        """Start it in a folder of its own under `folders`. Raises EnvError."""
        remove_abandoned(folders)
        self.folder, self._lock = make_folder(folders)
        self._on_ask = on_ask
        self._buffer = b""
        self._next_id = itertools.count(1)
        self.process = self._start(python, pass_on)
        try:
            self._line(time.monotonic() + START_LIMIT_S, "start")
        except EnvError:
            self.close()
            raise

    def _start(self, python: Path, pass_on: Mapping[str, str]) -> subprocess.Popen[bytes]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment = {**inherited, **pass_on, **OWN}
        environment["NO_PROXY"] = environment["no_proxy"] = "127.0.0.1,localhost"
        with open(self.folder / "child.log", "wb") as log:
            return subprocess.Popen(
                [str(python), "-m", "workers.environments.osworld.child"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,
                # The folder's lock is held until the child is gone too.
                pass_fds=(self._lock,),
            )

    def point(self, address: str) -> None:
        """Let the child's port lead to this agent: a unix socket's path, or HOST:PORT."""
        if address.startswith("/"):
            # By a link in the child's folder: the path may be longer than a socket address takes.
            replace_link(self.folder / SOCKET, address)
            address = SOCKET
        fresh = self.folder / f"{ADDRESS}.new"
        fresh.write_text(address)
        fresh.replace(self.folder / ADDRESS)

    # -- calls ------------------------------------------------------------------------------

    def call(self, call: str, arguments: Message, answer: type[Answer], timeout_s: float) -> Answer:
        """One call. Raises the error that its failure stands for; on a timeout the child is ended."""
        number = next(self._next_id)
        self._write({"id": number, "call": call, "arguments": arguments.model_dump(mode="json")})
        deadline = time.monotonic() + timeout_s
        while True:
            message = self._line(deadline, call)
            if "ask" in message:
                self._write(self._reply(str(message["ask"])))
                continue
            if message.get("id") != number:
                raise self._broken(f"answered call {message.get('id')} instead of {number}")
            try:
                if "error" in message:
                    raise_failure(call, Failure.model_validate(message["error"]))
                return answer.model_validate(message["result"])
            except (ValidationError, KeyError) as error:
                raise self._broken(f"gave no valid answer to {call}: {error}") from error

    def _reply(self, question: str) -> dict[str, str]:
        try:
            self._on_ask(question)
        except EnvError as error:
            return {"refusal": str(error)}
        return {}

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[self.process.stdin.write(data) :]
        except OSError as error:
            raise self._broken("ended") from error

    def _line(self, deadline: float, call: str) -> dict[str, Any]:
        """The child's next line."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._broken(f"gave no answer to {call} in time")
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise self._broken("ended")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError as error:
            raise self._broken(f"wrote {line[:80]!r}") from error

    def _broken(self, what: str) -> EnvError:
        """The child cannot be used any more: end it, and say what it said last."""
        self._kill()
        last = self._log_tail()
        message = f"the OSWorld process {what} (exit status {self.process.returncode})"
        return EnvError(f"{message}; its last lines: {last}" if last else message)

    def _log_tail(self) -> str:
        try:
            return (
                (self.folder / "child.log").read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()
            )
        except OSError:
            return ""

    # -- end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Let it give its machine back, then end it and remove its folder. Idempotent, raises nothing."""
        if self.process.poll() is None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_LIMIT_S)
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _kill(self) -> None:
        """End the child and what it started; its session is its process group."""
        if self.process.poll() is None:
            end_group(self.process.pid, leader=self.process)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def replace_link(link: Path, target: str) -> None:
    """Make `link` lead to `target` at once, whatever it was."""
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def make_folder(folders: Path) -> tuple[Path, int]:
    """A new private folder and the lock that says it is in use."""
    folder = folders / f"{os.getpid()}-{next(_numbers)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def remove_abandoned(folders: Path) -> None:
    """Remove folders whose worker and child were both killed: their lock is free."""
    for path in folders.glob(f"*/{LOCK}"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)
