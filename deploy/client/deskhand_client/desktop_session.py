"""A desktop of an env server, with a task on it: `python -m workers.env_server` lends it over HTTP."""

from __future__ import annotations

import secrets
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

import httpx

from deskhand_client.transport import ApiError, Unreachable

TIMEOUT_S = 960.0
"""A reset waits for a free desktop, up to 900 s by the server's default."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reset or a step answers."""

    screenshot: bytes = field(repr=False)
    """PNG."""
    instruction: str
    error: str
    """Why the last action was not done; "" when it was."""
    is_done: bool
    is_truncated: bool
    """Done by a limit, and not by the agent's word."""
    reward: float | None
    """None until it is done."""
    facts: dict[str, Any]
    """episode_id, task_id; once it is done also score and terms."""
    accessibility_tree: str = field(default="", repr=False)
    """OSWorld's XML; "" unless the reset said `require_a11y_tree`."""
    terminal: str = field(default="", repr=False)
    """Its text; "" unless the reset said `require_terminal`."""


class DesktopSession:
    """One desktop at a time, held from the first reset to `close`. Raises ApiError, Unreachable."""

    def __init__(self, url: str, token: str = "", *, timeout_s: float = TIMEOUT_S) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=f"{self.url}/openenv", headers=headers, timeout=timeout_s)
        self._episode_id = ""

    def tasks(self, split: str = "") -> list[dict[str, Any]]:
        """The server's own tasks: task_id, instruction, screen, split."""
        return self._ask("GET", "/tasks", params={"split": split})["tasks"]

    def reset(self, **asked: Any) -> Seen:
        """Begin a task: task_id, or index and split, or an OSWorld `task`; max_turns, reward_preset,
        require_a11y_tree, require_terminal."""
        seen = self._seen("/reset", {**asked, "episode_id": self._episode_id})
        self._episode_id = seen.facts["episode_id"]
        return seen

    def step(self, *, code: str = "", command: dict[str, Any] | None = None) -> Seen:
        """One turn: pyautogui code (or DONE, FAIL, WAIT), or an action in Deskhand's normal form."""
        action = {"command": command} if command is not None else {"code": code}
        return self._seen("/step", {"action": action, "episode_id": self._episode_id})

    def end(self) -> Seen:
        """Go no further: truncated, scored and rewarded as it stands."""
        return self._seen("/end", {"episode_id": self._episode_id})

    def close(self) -> None:
        """Give the desktop back."""
        if self._episode_id:
            self._ask("POST", "/close", json={"episode_id": self._episode_id})
            self._episode_id = ""
        self._http.close()

    def _seen(self, path: str, body: dict[str, Any]) -> Seen:
        # With a key, a request that is repeated after a lost answer is done once.
        answer = self._ask("POST", path, json=body, headers={"Idempotency-Key": secrets.token_hex(8)})
        observation, facts = answer["observation"], answer["metadata"]
        return Seen(
            screenshot=b64decode(observation["screenshot_png"]),
            instruction=observation["instruction"],
            error=observation["error"],
            is_done=answer["done"],
            is_truncated=facts.get("truncated", False),
            reward=answer["reward"],
            facts=facts,
            accessibility_tree=observation.get("accessibility_tree", ""),
            terminal=observation.get("terminal", ""),
        )

    def _ask(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, **sent)
        except httpx.TransportError as error:
            raise Unreachable(f"{self.url}: {error}") from error
        body = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        if answer.is_error:
            message = body.get("error", f"status {answer.status_code} and no reason")
            raise ApiError(answer.status_code, body.get("code", ""), message, {})
        return body
