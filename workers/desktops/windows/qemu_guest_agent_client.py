"""Files and commands of a guest through the QEMU guest agent: JSON lines over the socket of a serial port.

    connect -> guest-sync-delimited -> (guest-exec, guest-file-*)* -> close
It has the verbs of `workers.desktops.agent_client.AgentClient`, so that set-up and evaluators need not know
which of the two they talk to. A call that gets no answer closes the connection; the next one synchronises
anew, so a late answer is never taken for another call's. Source: QEMU's qga/qapi-schema.json, 7.2.
"""

import base64
import json
import random
import shlex
import socket
import time
from typing import Any, Self

from workers.desktops.agent_contract import ExecResult, Waiting
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.windows.guest_platforms import LINUX, PLATFORMS, Platform
from workers.processes.unix_socket import connect_unix

SENTINEL = b"\xff"
"""Precedes the answer of guest-sync-delimited, and makes the agent forget a half-sent line before it."""
FILE_CHUNK = 48 * 1024
"""Bytes of one read or write: a serial port carries them slowly, and a call has a time limit."""
MAX_LINE = 64 << 20
FIRST_POLL_S, MAX_POLL_S = 0.01, 0.25


class GuestAgentClient:
    """One connection. Not thread-safe."""

    def __init__(self, socket_path: str, timeout_s: float = 30.0) -> None:
        self._path = socket_path
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._pending = b""
        self._platform: Platform | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. Idempotent."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._pending = None, b""

    # -- the protocol -----------------------------------------------------------------------

    def call(self, command: str, arguments: dict[str, Any] | None = None, timeout_s: float = 0.0) -> Any:
        """One command's result. Raises EnvError: guest when the agent refuses, infra when it is silent."""
        limit_s = timeout_s or self._timeout_s
        try:
            if self._socket is None:
                self._connect(limit_s)
            answer = self._ask({"execute": command, "arguments": arguments or {}}, limit_s)
        except (OSError, ValueError) as error:
            self.close()
            message = f"the guest agent does not answer {command}: {error!r}"
            raise EnvError(message) from error
        if "error" in answer:
            message = f"the guest agent refused {command}: {answer['error'].get('desc', answer['error'])}"
            raise EnvError(message, kind=ErrorKind.GUEST)
        return answer.get("return")

    def ping(self, timeout_s: float = 2.0) -> bool:
        """Whether the agent is up."""
        try:
            self.call("guest-ping", timeout_s=timeout_s)
        except EnvError:
            return False
        return True

    def _connect(self, limit_s: float) -> None:
        self._socket = connect_unix(self._path, limit_s)
        self._pending = b""
        token = random.getrandbits(31)
        self._send({"execute": "guest-sync-delimited", "arguments": {"id": token}}, limit_s, SENTINEL)
        deadline = time.monotonic() + limit_s
        while True:
            line = self._line(deadline)
            # Answers of earlier owners of the port come first; ours is the one that has our number.
            _, found, rest = line.rpartition(SENTINEL)
            if found and json.loads(rest).get("return") == token:
                return

    def _ask(self, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        self._send(request, limit_s)
        answer = json.loads(self._line(time.monotonic() + limit_s))
        if not isinstance(answer, dict):
            raise ValueError("its answer is no object")
        return answer

    def _send(self, request: dict[str, Any], limit_s: float, prefix: bytes = b"") -> None:
        assert self._socket is not None
        self._socket.settimeout(limit_s)
        self._socket.sendall(prefix + json.dumps(request).encode() + b"\n")

    def _line(self, deadline: float) -> bytes:
        """The next non-empty line. Raises TimeoutError, and OSError when the port closes."""
        assert self._socket is not None
        while True:
            line, found, rest = self._pending.partition(b"\n")
            if found:
                self._pending = rest
                if line.strip():
                    return line
                continue
            if len(self._pending) > MAX_LINE:
                raise ValueError("its answer has no end")
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionResetError("the port was closed")
            self._pending += part

    # -- what set-up and evaluators use -----------------------------------------------------

    @property
    def platform(self) -> str:
        """windows or linux."""
        return self.system.name

    @property
    def system(self) -> Platform:
        """How commands are written for the guest's operating system."""
        if self._platform is None:
            # Agents older than 2.10 cannot tell; they ran on Linux.
            os_info = self.call("guest-get-osinfo") or {}
            self._platform = PLATFORMS["windows"] if os_info.get("id") == "mswindows" else LINUX
        return self._platform

    def execute(
        self, command: str | list[str], *, shell: bool = False, timeout_s: float = 60.0
    ) -> ExecResult:
        """Run a command to its end. A non-zero exit is an answer, not an error.

        With `shell` a string is run by sh, on Windows by PowerShell. Raises EnvError (guest) when the program
        cannot be started or does not end; the guest agent cannot end it then.
        """
        argv = self._argv(command, shell)
        started = self.call(
            "guest-exec",
            {"path": argv[0], "arg": argv[1:], "capture-output": True},
            timeout_s=self._timeout_s,
        )
        status = self._wait(int(started["pid"]), time.monotonic() + timeout_s, argv[0])
        # A program that a signal ended has no exit code.
        code = status["exitcode"] if "exitcode" in status else -int(status.get("signal", 1))
        return ExecResult(code, _text(status.get("out-data")), _text(status.get("err-data")))

    def launch(
        self, command: str | list[str], *, shell: bool = False, env: dict[str, str] | None = None
    ) -> int:
        """Start a program on the user's screen; its pid in the guest, 0 where that is not known."""
        return self.system.launch(self, self._argv(command, shell), env or {})

    def use_place(self, timezone: str, locale: str) -> None:
        message = "a guest with QEMU's agent keeps its image's time zone and locale: the task's cannot be set"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)

    def waiting(self) -> Waiting | None:
        return None

    def accessibility(self) -> str:
        raise EnvError("QEMU's guest agent reads no accessibility tree", kind=ErrorKind.TASK, permanent=True)

    def terminal(self) -> str:
        raise EnvError("QEMU's guest agent reads no terminal", kind=ErrorKind.TASK, permanent=True)

    def begin_evaluation(self) -> None:
        """It runs as SYSTEM, which the desktop's user cannot reach."""

    def open_file(self, path: str) -> None:
        message = f"{path}: this guest's agent cannot choose a program for a file; launch one with it"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)

    def start(self, argv: list[str], env: list[str] | None = None) -> int:
        """Start a program as the agent's own user and go on."""
        arguments: dict[str, Any] = {"path": argv[0], "arg": argv[1:]}
        if env:
            arguments["env"] = env
        return int(self.call("guest-exec", arguments)["pid"])

    def put(self, path: str, data: bytes) -> None:
        """Write a file; its folder is made."""
        path = self.system.expand(path)
        self.system.make_folder(self, path)
        handle = self.call("guest-file-open", {"path": path, "mode": "w"})
        try:
            for start in range(0, len(data), FILE_CHUNK):
                self._write(handle, data[start : start + FILE_CHUNK], path)
            self.call("guest-file-flush", {"handle": handle})
        finally:
            self.call("guest-file-close", {"handle": handle})

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None when there is no such file."""
        path = self.system.expand(path)
        try:
            handle = self.call("guest-file-open", {"path": path, "mode": "r"})
        except EnvError as error:
            if error.kind is ErrorKind.GUEST and not self.system.exists(self, path):
                return None
            raise
        try:
            return self._read(handle)
        finally:
            self.call("guest-file-close", {"handle": handle})

    def _write(self, handle: int, chunk: bytes, path: str) -> None:
        body = {"handle": handle, "buf-b64": base64.b64encode(chunk).decode()}
        written = self.call("guest-file-write", body)["count"]
        if written != len(chunk):
            raise EnvError(f"{path}: the guest took {written} of {len(chunk)} bytes", kind=ErrorKind.GUEST)

    def _read(self, handle: int) -> bytes:
        parts = []
        while True:
            answer = self.call("guest-file-read", {"handle": handle, "count": FILE_CHUNK})
            parts.append(base64.b64decode(answer["buf-b64"]))
            if answer["eof"] or not answer["count"]:
                return b"".join(parts)

    def _argv(self, command: str | list[str], shell: bool) -> list[str]:
        if shell:
            text = command if isinstance(command, str) else shlex.join(command)
            return self.system.shell(text)
        argv = self.system.split(command) if isinstance(command, str) else [str(word) for word in command]
        if not argv:
            raise EnvError("the command is empty", kind=ErrorKind.TASK, permanent=True)
        return argv

    def _wait(self, pid: int, deadline: float, program: str) -> dict[str, Any]:
        pause_s = FIRST_POLL_S
        while True:
            status = self.call("guest-exec-status", {"pid": pid})
            if status["exited"]:
                return status
            if time.monotonic() > deadline:
                raise EnvError(f"{program} did not end in the guest", kind=ErrorKind.GUEST)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, MAX_POLL_S)


def _text(encoded: str | None) -> str:
    """A program's output; bytes that are no UTF-8 become replacement characters."""
    return base64.b64decode(encoded or "").decode(errors="replace")
