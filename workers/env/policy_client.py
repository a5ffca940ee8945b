"""Client of the policy server: one trajectory's completions, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from training.contracts.types import Completion

ATTEMPTS = 4
"""Every call may be repeated: all are idempotent."""
RETRY_PAUSE_S = 0.2


class PolicyError(Exception):
    """Raised when the policy server refuses a call or stays unreachable."""

    def __init__(self, code: str, message: str, status: int = 0) -> None:
        super().__init__(f"policy server: {message} ({code})")
        self.code = code
        self.status = status


class ContextFull(PolicyError):
    """Raised when the trajectory has no room for another completion."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn of the policy that was recorded before."""

    text: str
    completion: Completion
    screenshot: bytes | None
    """PNG; None for a text-only prompt."""


class PolicyClient:
    """One trajectory's or the gpu worker's connection; not shared between threads."""

    def __init__(self, url: str, token: str, *, timeout_s: float = 30.0) -> None:
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_s,
            trust_env=False,  # a proxy must never stand between two processes of one host
        )

    def complete(
        self,
        trajectory_id: str,
        *,
        turn_index: int,
        text: str,
        screenshot: bytes | None,
        temperature: float,
        max_tokens: int,
    ) -> Completion:
        """The completion of turn `turn_index`. Raises ContextFull, PolicyError or httpx.TransportError."""
        request = {
            "turn_index": turn_index,
            "text": text,
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        files: dict[str, Any] = {"request": (None, json.dumps(request), "application/json")}
        if screenshot is not None:
            files["screenshot"] = ("screenshot.png", screenshot, "image/png")
        answer = self._call("POST", f"/trajectories/{trajectory_id}/turns", files=files)
        return Completion.model_validate_json(answer.content)

    def resume(self, trajectory_id: str, turns: Sequence[RecordedTurn]) -> None:
        """Begin a trajectory with these turns: the next one is asked for as if they had happened there.

        Raises PolicyError (409) when they do not fit the server's model and prompt.
        """
        told = [{"text": turn.text, "completion": turn.completion.model_dump(mode="json")} for turn in turns]
        files: dict[str, Any] = {"request": (None, json.dumps({"turns": told}), "application/json")}
        for place, turn in enumerate(turns):
            if turn.screenshot is not None:
                files[f"screenshot-{place}"] = (f"{place}.png", turn.screenshot, "image/png")
        self._call("POST", f"/trajectories/{trajectory_id}/prefix", files=files)

    def forget(self, trajectory_id: str) -> None:
        """Drop the trajectory's context on the server; unreachable servers have forgotten already."""
        try:
            self._http.delete(f"/trajectories/{trajectory_id}")
        except httpx.TransportError:
            return

    def load_weights(self, path: str, policy_version: int) -> int:
        """Make the server take new weights; the version that it serves then."""
        answer = self._call("POST", "/weights", json={"path": path, "policy_version": policy_version})
        return int(answer.json()["policy_version"])

    def canary(self) -> dict[str, Any]:
        """The engine's view of the fixed canary sequence; see docs/contracts.md."""
        return self._call("POST", "/canary", json={}).json()

    def health(self) -> dict[str, Any]:
        """Status, policy version and model. Raises PolicyError while it loads."""
        return self._call("GET", "/health").json()

    def close(self) -> None:
        self._http.close()

    def _call(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        """Send; error answers become exceptions."""
        answer = self._send(method, path, **kwargs)
        if answer.is_success:
            return answer
        code, message = _error_of(answer)
        kind = ContextFull if code == "context_full" else PolicyError
        raise kind(code, message, answer.status_code)

    @retry(
        retry=retry_if_exception_type(httpx.TransportError),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=RETRY_PAUSE_S),
        reraise=True,
    )
    def _send(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        return self._http.request(method, path, **kwargs)


def _error_of(answer: httpx.Response) -> tuple[str, str]:
    try:
        error = answer.json()["error"]
        return str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return "http", f"status {answer.status_code}: {answer.text[:200]}"
