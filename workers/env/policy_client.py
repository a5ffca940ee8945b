"""Client of the policy server: one trajectory's completions, turn by turn."""

import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx
from pydantic import ValidationError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from training.contracts import policy_server as routes
from training.contracts.route_types import Answered, Asked, Nothing, ProblemAnswer, Route
from training.contracts.types import Completion
from training.contracts.weight_requests import Canary, Load

ATTEMPTS = 4
"""Every call may be repeated: all are idempotent."""
RETRY_PAUSE_S = 0.2
KEEP_S = 4.0
"""An idle connection is kept this long: the server closes it after five seconds."""


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
    text: str
    completion: Completion
    screenshot: bytes | None
    """PNG; None for a text-only prompt."""


@lru_cache(maxsize=16)
def shared_http(certificate: str) -> httpx.Client:
    """The connections of this process to policy servers, of all threads and trajectories.

    `certificate`: PEM of the only one to trust; "" = plain HTTP. Of old attempts' servers the connections
    close when nothing uses them any more.
    """
    return httpx.Client(
        verify=ssl.create_default_context(cadata=certificate) if certificate else False,
        limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEP_S),
        trust_env=False,  # a proxy must never stand between two processes of one host
    )


class PolicyClient:
    """What one trajectory, or the gpu worker, asks a policy server."""

    def __init__(self, url: str, token: str, *, certificate: str = "", timeout_s: float = 30.0) -> None:
        if url.startswith("https:") and not certificate:
            raise PolicyError("no_certificate", f"{url} came without the certificate to trust")
        self._timeout_s = timeout_s
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = shared_http(certificate)

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
        """The completion of turn `turn_index`. Raises ContextFull, PolicyError or httpx.TransportError.

        The limit is the policy's: seconds in which the engine could not answer do not count.
        """
        request = routes.TurnRequest(
            trajectory_id=trajectory_id,
            turn_index=turn_index,
            text=text,
            temperature=temperature,
            max_tokens=max_tokens,
        )
        files = {} if screenshot is None else {"screenshot": screenshot}
        started, name = time.monotonic(), routes.TrajectoryName(trajectory_id=trajectory_id)
        while True:
            try:
                return self._ask(routes.TURN, request, files)
            except httpx.ReadTimeout:
                used_s = time.monotonic() - started - self._ask(routes.WAITED, name).waited_s
                if used_s >= ATTEMPTS * self._timeout_s:
                    raise

    def resume(self, trajectory_id: str, turns: Sequence[RecordedTurn]) -> None:
        """Begin a trajectory with these turns: the next one is asked for as if they had happened there.

        Raises PolicyError (409) when they do not fit the server's model and prompt.
        """
        recorded = tuple(routes.PrefixTurn(text=turn.text, completion=turn.completion) for turn in turns)
        files = {
            f"screenshot-{place}": turn.screenshot
            for place, turn in enumerate(turns)
            if turn.screenshot is not None
        }
        self._ask(routes.PREFIX, routes.PrefixRequest(trajectory_id=trajectory_id, turns=recorded), files)

    def forget(self, trajectory_id: str) -> None:
        """Drop the trajectory's context on the server; unreachable servers have forgotten already."""
        wire = routes.FORGET.write_request(routes.TrajectoryName(trajectory_id=trajectory_id))
        try:
            self._http.delete(self._url + wire.path, headers=self._headers, timeout=self._timeout_s)
        except httpx.TransportError:
            return

    def load_weights(self, path: str, policy_version: int) -> int:
        """Make the server take new weights; the version that it serves then."""
        return self._ask(routes.WEIGHTS, Load(path=path, policy_version=policy_version)).policy_version

    def canary(self) -> Canary:
        """The engine's logprobs of the fixed canary sequence."""
        return self._ask(routes.CANARY, Nothing())

    def health(self) -> routes.Health:
        """Status, policy version and model. Raises PolicyError while it loads."""
        return self._ask(routes.HEALTH, Nothing())

    def _ask(
        self, route: Route[Asked, Answered], request: Asked, files: Mapping[str, bytes] | None = None
    ) -> Answered:
        """Send; error answers become exceptions."""
        wire = route.write_request(request)
        body: dict[str, Any] = {"content": wire.body}
        if route.files:
            form: dict[str, Any] = {"request": (None, wire.body, "application/json")}
            for name, png in (files or {}).items():
                form[name] = (f"{name}.png", png, "image/png")
            body = {"files": form}
        answer = self._send(route.method, wire.path, **body)
        if answer.is_success:
            return route.read_answer(answer.content)
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
        url = self._url + path
        return self._http.request(method, url, headers=self._headers, timeout=self._timeout_s, **kwargs)


def _error_of(answer: httpx.Response) -> tuple[str, str]:
    try:
        error = ProblemAnswer.model_validate_json(answer.content).error
    except ValidationError:
        return "http", f"status {answer.status_code}: {answer.text[:200]}"
    return error.code, error.message
