"""A blocking QEMU monitor connection for env workers, which are threads and not event loops.

The desk host uses the `qemu.qmp` package; this is the part of it that a console needs: greeting, commands,
answers by number, events ignored.
"""

import contextlib
import itertools
import json
import time
from typing import Any

from workers.desktops.contract import EnvError
from workers.processes.unix_socket import connect_unix

CALL_LIMIT_S = 20.0
"""A machine that hangs must become an error, not a hanging worker."""


class MonitorRefused(EnvError):
    """Raised when QEMU understood a command and refused it."""


class QmpClient:
    """One connection. Not thread-safe."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._numbers = itertools.count()
        try:
            self._socket = connect_unix(path, CALL_LIMIT_S)
        except OSError as exc:
            raise EnvError(f"the machine's monitor does not answer on {path}: {exc}") from exc
        self._reader = self._socket.makefile("rb")
        self._line()  # the greeting; it comes only when no one else is connected
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:
        """One command and its answer. Raises EnvError."""
        number = next(self._numbers)
        request: dict[str, Any] = {"execute": command, "id": number}
        if arguments:
            request["arguments"] = arguments
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as exc:
            raise self._lost(exc) from exc
        deadline = time.monotonic() + CALL_LIMIT_S
        while time.monotonic() < deadline:
            answer = self._line()
            if answer.get("id") != number:
                continue  # an event, or the answer to a call that was given up
            if "error" in answer:
                raise MonitorRefused(f"QEMU refused {command}: {answer['error'].get('desc', '')}")
            return answer.get("return")
        raise EnvError(f"QEMU did not answer {command} in {CALL_LIMIT_S:g} s")

    def _line(self) -> dict[str, Any]:
        try:
            line = self._reader.readline()
        except OSError as exc:
            raise self._lost(exc) from exc
        if not line:
            raise self._lost(ConnectionResetError("connection closed"))
        return json.loads(line)

    def _lost(self, exc: OSError) -> EnvError:
        self.close()
        return EnvError(f"the machine is gone ({self.path}): {exc}")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._reader.close()
        with contextlib.suppress(OSError):
            self._socket.close()
