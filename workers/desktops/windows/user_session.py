"""The user's session of a Windows guest: starting programs on its screen and asking for its windows.

The guest agent is a service and cannot see the screen. `media/session.ps1` runs as the user, started at
logon; it answers requests that are files:

    BOX\\in\\ID.json  {"verb": "launch", "argv": [...]} | {"verb": "windows"}
    BOX\\out\\ID.json {"ok": true, "windows": [...]} | {"ok": false, "message": "..."}
"""

import json
import subprocess
import time
import uuid
from typing import Any, Protocol

from workers.desktops.contract import EnvError, ErrorKind

BOX = "C:\\ProgramData\\Deskhand"
ANSWER_LIMIT_S = 20.0
POLL_S = 0.1


class GuestFiles(Protocol):
    """Files of the guest, as its agent gives them."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None when there is no such file."""


class UserSession:
    """Requests to the program that runs as the user."""

    def __init__(self, agent: GuestFiles) -> None:
        self._agent = agent

    def launch(self, argv: list[str]) -> None:
        """Start a program on the user's screen. Raises EnvError (guest)."""
        # The session starts FILE with one string of arguments, as CreateProcess wants it.
        self._ask({"verb": "launch", "file": argv[0], "arguments": subprocess.list2cmdline(argv[1:])})

    def windows(self) -> list[dict[str, Any]]:
        """[{title, program, active}] of the visible windows, in no order."""
        return list(self._ask({"verb": "windows"})["windows"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        name = f"{uuid.uuid4().hex}.json"
        # The session skips a file that is no whole JSON yet and looks again.
        self._agent.put(f"{BOX}\\in\\{name}", json.dumps(request).encode())
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while (raw := self._agent.get(f"{BOX}\\out\\{name}")) is None:
            if time.monotonic() > deadline:
                message = (
                    "the user's session does not answer: is the user logged in, and was install.ps1 run "
                    "in the image (docs/windows.md)?"
                )
                raise EnvError(message, kind=ErrorKind.GUEST)
            time.sleep(POLL_S)
        answer = json.loads(raw)
        if not answer.get("ok"):
            raise EnvError(f"the user's session: {answer.get('message')}", kind=ErrorKind.GUEST)
        return answer
