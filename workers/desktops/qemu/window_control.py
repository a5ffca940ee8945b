"""The windows of a machine, asked of the agent in it."""

from __future__ import annotations

import json
from typing import Any

from workers.desktops.agent_client import AgentClient
from workers.desktops.console_contract import Window, find_window
from workers.desktops.contract import EnvError, ErrorKind


class AgentWindows:
    """Queries and requests; dearer than a screenshot under emulation."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent

    def all(self) -> list[Window]:
        status, raw = self._agent.call("GET", "/windows")
        if status == 404:
            message = "the guest's agent does not tell its windows; use an image built by `make guest-image`"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        answer: dict[str, Any] = json.loads(raw)
        if status != 200:
            raise EnvError(f"windows: {answer.get('message', status)}", kind=ErrorKind.GUEST)
        return [Window(**found) for found in answer["windows"]]

    def find(self, text: str) -> Window | None:
        return find_window(self.all(), text)

    def activate(self, text: str) -> bool:
        return self._ask("/windows/activate", text)

    def close(self, text: str) -> bool:
        return self._ask("/windows/close", text)

    def move(self, window_id: int, box: tuple[int, int, int, int]) -> None:
        self._agent.ask("/windows/move", {"window_id": window_id, "box": box})

    def _ask(self, path: str, text: str) -> bool:
        window = self.find(text)
        if window is None:
            return False
        self._agent.ask(path, {"window_id": window.window_id})
        return True
