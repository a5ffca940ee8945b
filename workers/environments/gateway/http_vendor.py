"""The reference vendor: HTTPS with a token header for the account and a session header for a sandbox.

POST /v1/sandboxes {owner, image, screen_size} + Idempotency-Key -> a sandbox, or 429 with Retry-After and
{error, queue_position, wait_s}; GET /v1/sandboxes?owner=; DELETE /v1/sandboxes/ID; and inside a session
GET /v1/screenshot, POST /v1/input, /v1/execute, /v1/launch. Our env server serves the same (docs/remote.md).
"""

import secrets
from typing import Any
from urllib.parse import quote

from training.contracts.config import GatewayConfig
from training.contracts.types import Action
from workers.desktops.agent_contract import ExecResult
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.gateway.vendor_contract import Sandbox, SandboxRequest
from workers.environments.http_transport import Answer, Transport

OWN_ERRORS = frozenset({"desktop", "setup", "evaluator"})
"""Codes of 5xx answers that a repetition would not change."""
MARGIN_S = 10.0


class HttpVendor:
    """One cluster over HTTPS."""

    def __init__(self, knobs: GatewayConfig, token: str) -> None:
        self._knobs = knobs
        self._transport = Transport(
            knobs.endpoint,
            headers={knobs.token_header: token},
            timeout_s=knobs.request_timeout_s,
            ca_file=knobs.ca_file,
            attempts=knobs.max_attempts,
        )

    def create(self, request: SandboxRequest) -> Sandbox:
        body = {
            "owner": request.owner,
            "image": request.image,
            "screen_size": [request.width, request.height],
        }
        answer = self._transport.call(
            "POST",
            "/v1/sandboxes",
            body,
            headers={"Idempotency-Key": request.key},
            timeout_s=self._knobs.create_timeout_s,
            repeatable=True,
            may_wait=True,
            final=OWN_ERRORS,
        )
        return self._sandbox(self._good(answer, "create a sandbox"))

    def owned(self, owner: str) -> list[Sandbox]:
        answer = self._transport.call("GET", f"/v1/sandboxes?owner={quote(owner)}", repeatable=True)
        rows = self._good(answer, "list sandboxes").get("sandboxes")
        if not isinstance(rows, list):
            raise EnvError(f"{self._knobs.endpoint} answered no list of sandboxes")
        return [self._sandbox(row) for row in rows]

    def delete(self, sandbox: Sandbox) -> None:
        path = f"/v1/sandboxes/{quote(sandbox.sandbox_id, safe='')}"
        answer = self._transport.call("DELETE", path, repeatable=True)
        if answer.status != 404:
            self._good(answer, "delete a sandbox")

    def screenshot(self, sandbox: Sandbox) -> bytes:
        answer = self._transport.call(
            "GET", "/v1/screenshot", headers=self._session(sandbox), repeatable=True, final=OWN_ERRORS
        )
        self._good(answer, "take a screenshot")
        return answer.content

    def input(self, sandbox: Sandbox, action: Action) -> None:
        body = {"action": action.model_dump(mode="json", exclude_defaults=True)}
        self._ask(sandbox, "/v1/input", body, "act")

    def execute(
        self, sandbox: Sandbox, command: str | list[str], *, shell: bool, timeout_s: float
    ) -> ExecResult:
        body = {"command": command, "shell": shell, "timeout_s": timeout_s}
        fields = self._ask(sandbox, "/v1/execute", body, "run a command", timeout_s=timeout_s + MARGIN_S)
        try:
            return ExecResult(int(fields["returncode"]), str(fields["output"]), str(fields["error"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"{self._knobs.endpoint} answered no result of a command") from error

    def launch(self, sandbox: Sandbox, command: str | list[str], *, shell: bool) -> None:
        self._ask(sandbox, "/v1/launch", {"command": command, "shell": shell}, "start a program")

    def close(self) -> None:
        self._transport.close()

    def _session(self, sandbox: Sandbox) -> dict[str, str]:
        return {self._knobs.session_header: sandbox.session_id}

    def _ask(
        self, sandbox: Sandbox, path: str, body: dict[str, Any], what: str, timeout_s: float | None = None
    ) -> dict[str, Any]:
        # A fresh key per call: a repetition after a lost answer is not done twice.
        headers = {**self._session(sandbox), "Idempotency-Key": secrets.token_hex(8)}
        answer = self._transport.call(
            "POST", path, body, headers=headers, timeout_s=timeout_s, repeatable=True, final=OWN_ERRORS
        )
        return self._good(answer, what)

    def _good(self, answer: Answer, what: str) -> dict[str, Any]:
        where = f"{self._knobs.endpoint} would not {what}"
        if answer.status in (401, 403) and answer.code != "session_expired":
            secret = self._knobs.token_secret or "(none is named)"
            text = f"{where}: the token is refused; check the secret {secret}"
            raise EnvError(text, permanent=True)
        if answer.status in (401, 403, 404, 410):
            raise EnvError(f"{where}: the sandbox's session is over: {answer.message}")
        if answer.status in (400, 422):
            raise EnvError(answer.message, kind=ErrorKind.TASK)
        if not 200 <= answer.status < 300:
            raise EnvError(f"{where}: {answer.status}: {answer.message}")
        return answer.fields

    def _sandbox(self, fields: Any) -> Sandbox:
        try:
            return Sandbox(
                sandbox_id=str(fields["sandbox_id"]),
                session_id=str(fields["session_id"]),
                owner=str(fields.get("owner", "")),
                key=str(fields.get("key", "")),
                width=int(fields["width"]),
                height=int(fields["height"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"{self._knobs.endpoint} described a sandbox without {error}"
            raise EnvError(text) from error
