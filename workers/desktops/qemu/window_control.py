"""The windows of a machine, asked of the agent in it."""

import json
from typing import Any

from workers.desktops.agent_client import AgentClient
from workers.desktops.console_contract import Window, find_window
from workers.desktops.contract import EnvError, ErrorKind

ANSWER_S = 10.0
"""For the answer itself, beside the wait for the display."""


class AgentWindows:
    """Queries and requests; dearer than a screenshot under emulation."""

    def __init__(self, agent: AgentClient, wait_s: float = 0.0) -> None:
        """`wait_s`: how long the agent may wait for the display; 0 = as it would by itself."""
        self._agent = agent
        self._wait_s = wait_s
        self._query = f"?wait_s={wait_s:g}" if wait_s else ""

    @property
    def _timeout_s(self) -> float | None:
        """For a whole request, so that the agent's own words come back."""
        return self._wait_s + ANSWER_S if self._wait_s else None

    def all(self) -> list[Window]:
        status, raw = self._agent.call("GET", f"/windows{self._query}", timeout_s=self._timeout_s)
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
        body = {"window_id": window_id, "box": box}
        self._agent.ask(f"/windows/move{self._query}", body, self._timeout_s)

    def _ask(self, path: str, text: str) -> bool:
        window = self.find(text)
        if window is None:
            return False
        self._agent.ask(f"{path}{self._query}", {"window_id": window.window_id}, self._timeout_s)
        return True
