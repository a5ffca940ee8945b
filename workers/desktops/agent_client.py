"""Talk to the agent inside a desktop: HTTP over a unix socket or a loopback port, standard library only.

Uses what our agent and the server in OSWorld's own image both offer, so either may be in a desktop; only
`reset` needs ours.
"""

import http.client
import json
import urllib.parse
import uuid
from typing import Any, Self

from workers.desktops.agent_contract import ExecResult, Waiting
from workers.desktops.contract import EnvError, ErrorKind, NotClean
from workers.desktops.desktop_texts import MACHINE_READ_LIMIT_S, READ_LIMIT_S
from workers.processes.unix_socket import connect_unix


class _Connection(http.client.HTTPConnection):
    """To a unix socket's path, or to HOST:PORT."""

    def __init__(self, address: str, timeout: float) -> None:
        self._path = address if address.startswith("/") else ""
        super().__init__("desk" if self._path else address, timeout=timeout)

    def connect(self) -> None:
        if self._path:
            self.sock = connect_unix(self._path, self.timeout)
        else:
            super().connect()


class AgentClient:
    """One keep-alive connection. Not thread-safe."""

    platform = "linux"
    """The system of the desktops that have this agent; evaluators ask in its words."""

    def __init__(self, address: str, timeout_s: float = 30.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._connection: _Connection | None = None
        self._tells_waiting = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        kind: str = "application/json",
        timeout_s: float | None = None,
    ) -> tuple[int, bytes]:
        """One request. Raises EnvError (infra) when the agent is gone."""
        if self._connection is None:
            self._connection = _Connection(self._address, self._timeout_s)
        connection = self._connection
        connection.timeout = timeout_s or self._timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            connection.request(method, path, body, {"Content-Type": kind, "Content-Length": str(len(body))})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            raise EnvError(f"the desktop's agent does not answer: {exc!r}") from exc

    def ask(self, path: str, body: dict[str, Any], timeout_s: float | None = None) -> dict[str, Any]:
        """POST JSON, get JSON. Raises EnvError (guest) on an error answer."""
        status, raw = self.call("POST", path, json.dumps(body).encode(), timeout_s=timeout_s)
        answer = _object(raw)
        if status != 200:
            message = f"{path} failed in the desktop: {answer.get('message', status)}"
            raise EnvError(message, kind=ErrorKind.GUEST)
        return answer

    def reset(self) -> dict[str, Any]:
        """End the trajectory's programs and wipe its files. Raises NotClean."""
        status, raw = self.call("POST", "/reset", b"{}")
        answer = json.loads(raw)
        if status != 200:
            raise NotClean(answer.get("message", f"status {status}"))
        return answer

    def use_place(self, timezone: str, locale: str) -> None:
        """Until the next reset programs have this time zone and locale; OSWorld's own server cannot do it."""
        body = json.dumps({"timezone": timezone, "locale": locale}).encode()
        status, raw = self.call("POST", "/place", body)
        if status != 200:
            reason = "its agent cannot set them" if status in (404, 405) else _object(raw).get("message")
            message = f"time zone and locale of the desktop: {reason}"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)

    def waiting(self) -> Waiting | None:
        """What the programs are doing now; None where its agent does not tell."""
        if not self._tells_waiting:
            return None
        status, raw = self.call("GET", "/waiting")
        self._tells_waiting = status == 200
        if status != 200:
            return None
        waiting = _object(raw)
        return Waiting(waiting["working"], [(str(name), float(left_s)) for name, left_s in waiting["timers"]])

    def accessibility(self) -> str:
        """OSWorld's XML of all programs' widgets."""
        return self._read("/accessibility", "AT")

    def terminal(self) -> str:
        """Text of the terminal in front; "" when there is none."""
        return self._read("/terminal", "output")

    def _read(self, path: str, name: str) -> str:
        is_machine = not self._address.startswith("/")
        status, raw = self.call("GET", path, timeout_s=MACHINE_READ_LIMIT_S if is_machine else READ_LIMIT_S)
        answer = _object(raw)
        text = answer.get(name) or ""
        if status != 200 or not isinstance(text, str):
            words = answer.get("message") or f"status {status}"
            raise EnvError(f"{path} failed in the desktop: {words}", kind=ErrorKind.GUEST)
        return text

    def begin_evaluation(self) -> None:
        """Commands are an evaluator's from now on. OSWorld's own server knows no such call."""
        status, _ = self.call("POST", "/evaluation", b"{}")
        if status not in (200, 404, 405):
            raise EnvError(f"the desktop's agent refuses an evaluation: {status}", kind=ErrorKind.GUEST)

    def execute(
        self, command: str | list[str], *, shell: bool = False, timeout_s: float = 60.0
    ) -> ExecResult:
        """Run a command to its end. A non-zero exit is an answer, not an error."""
        body = {"command": command, "shell": shell, "timeout": timeout_s}
        answer = self.ask("/execute", body, timeout_s=timeout_s + 5.0)
        return ExecResult(answer["returncode"], answer["output"], answer["error"])

    def launch(
        self, command: str | list[str], *, shell: bool = False, env: dict[str, str] | None = None
    ) -> int:
        """Start a program and return its pid inside the desktop, 0 when the agent does not tell."""
        answer = self.ask("/setup/launch", {"command": command, "shell": shell, "env": env or {}})
        return int(answer.get("pid", 0))

    def open_file(self, path: str) -> None:
        """Open a file in the program that the desktop has for it. Raises EnvError (guest)."""
        self.ask("/setup/open_file", {"path": path})

    def put(self, path: str, data: bytes) -> None:
        """Write a file; folders are made. ~ is HOME."""
        boundary = uuid.uuid4().hex
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file_path"\r\n\r\n{path}\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file_data"; filename="file"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = b"".join((head.encode(), data, f"\r\n--{boundary}--\r\n".encode()))
        kind = f"multipart/form-data; boundary={boundary}"
        status, raw = self.call("POST", "/setup/upload", body, kind=kind)
        if status != 200:
            raise EnvError(f"{path} could not be written: {raw[:200].decode()}", kind=ErrorKind.GUEST)

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None when there is no such file."""
        form = urllib.parse.urlencode({"file_path": path}).encode()
        status, raw = self.call("POST", "/file", form, kind="application/x-www-form-urlencoded")
        if status == 404:
            return None
        if status != 200:
            raise EnvError(f"{path} could not be read: {raw[:200].decode()}", kind=ErrorKind.GUEST)
        return raw


def _object(raw: bytes) -> dict[str, Any]:
    """A JSON answer; OSWorld's server answers some calls with a sentence, which becomes `message`."""
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": raw[:400].decode("utf-8", "replace")}
