"""Sandboxes whose gateway passes requests on to OSWorld's in-guest server.

GET /screenshot, /platform, /accessibility, /terminal and POST /screen_size, /execute, /setup/launch carry the
session and the token as headers. Bodies are JSON alone: such gateways pass no forms on, so files go through
/execute. Source: https://github.com/xlang-ai/OSWorld, desktop_env/server/main.py, and the gateway client of
https://github.com/inclusionAI/AReaL/pull/1326.
"""

import time
from dataclasses import replace
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.write.pyautogui_program import machine_code
from training.contracts.types import Action
from workers.desktops.agent_contract import ExecResult
from workers.desktops.console_contract import ActionRefused, require_typable
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import READ_LIMIT_S
from workers.environments.gateway.http_vendor import MARGIN_S, HttpVendor
from workers.environments.gateway.vendor_contract import Sandbox, SandboxRequest
from workers.environments.http_transport import Answer, ServerFailed

PREFIX = "import pyautogui; import time; pyautogui.FAILSAFE = False; "
GUEST_LIMIT_S = 120.0
"""The server ends a command after it."""
BOOT_POLL_S = 1.0
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


class OsworldGuestVendor(HttpVendor):
    """One such gateway."""

    def create(self, request: SandboxRequest) -> Sandbox:
        sandbox = self.start(request)
        try:
            return self._booted(sandbox)
        except EnvError:
            self.delete(sandbox)
            raise

    def start(self, request: SandboxRequest) -> Sandbox:
        """Start a machine, without waiting for its server; an adapter of a vendor's SDK has its own way."""
        return super().create(request)

    def _booted(self, sandbox: Sandbox) -> Sandbox:
        """With its true screen, once its server answers. Raises EnvError."""
        deadline = time.monotonic() + self._knobs.create_timeout_s
        while True:
            try:
                answer = self._guest(sandbox, "GET", "/platform")
                break
            except ServerFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(BOOT_POLL_S)
        platform = answer.content.decode(errors="replace").strip().strip('"')
        if platform != "Linux":
            text = f"the sandbox runs {platform[:40]}: provider gateway drives Linux alone"
            raise EnvError(text, permanent=True)
        fields = self._guest(sandbox, "POST", "/screen_size", {}, repeatable=True).fields
        try:
            return replace(sandbox, width=int(fields["width"]), height=int(fields["height"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"{self._knobs.endpoint} answered no size of the screen") from error

    def screenshot(self, sandbox: Sandbox) -> bytes:
        content = self._guest(sandbox, "GET", "/screenshot", repeatable=True).content
        if not content.startswith(PICTURES):
            raise EnvError(f"{self._knobs.endpoint} answered GET /screenshot with no PNG or JPEG")
        return content

    def input(self, sandbox: Sandbox, action: Action) -> None:
        require_typable(action)
        try:
            code = machine_code(action)
        except ActionTextError as error:
            raise ActionRefused(str(error)) from error
        command = ["python", "-c", PREFIX + code]
        done = self.execute(sandbox, command, shell=False, timeout_s=action.seconds + GUEST_LIMIT_S)
        if done.returncode:
            lines = (done.error or done.output).strip().splitlines()
            raise ActionRefused(lines[-1] if lines else f"pyautogui ended with {done.returncode}")

    def execute(
        self, sandbox: Sandbox, command: str | list[str], *, shell: bool, timeout_s: float
    ) -> ExecResult:
        body = {"command": command, "shell": shell}
        limit_s = max(timeout_s, GUEST_LIMIT_S) + MARGIN_S
        fields = self._guest(sandbox, "POST", "/execute", body, timeout_s=limit_s).fields
        try:
            return ExecResult(int(fields["returncode"]), str(fields["output"]), str(fields["error"]))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"{self._knobs.endpoint} answered no result of a command") from error

    def launch(self, sandbox: Sandbox, command: str | list[str], *, shell: bool) -> None:
        self._guest(sandbox, "POST", "/setup/launch", {"command": command, "shell": shell})

    def accessibility(self, sandbox: Sandbox) -> str:
        return self._read(sandbox, "/accessibility", "AT") or ""

    def terminal(self, sandbox: Sandbox) -> str:
        return self._read(sandbox, "/terminal", "output") or ""

    def _read(self, sandbox: Sandbox, path: str, name: str) -> str | None:
        """A text of the screen, null where there is none. Raises EnvError within READ_LIMIT_S."""
        fields = self._guest(sandbox, "GET", path, timeout_s=READ_LIMIT_S).fields
        text = fields.get(name, ...)
        if text is not None and not isinstance(text, str):
            raise EnvError(f"{self._knobs.endpoint} answered GET {path} with no {name}", kind=ErrorKind.GUEST)
        return text

    def _guest(
        self,
        sandbox: Sandbox,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        repeatable: bool = False,
    ) -> Answer:
        """One request to the server inside.

        It keeps no Idempotency-Key, so only reads are repeated. Its own 500 says what went wrong inside.
        """
        try:
            answer = self._transport.call(
                method,
                path,
                body,
                headers=self._session(sandbox),
                timeout_s=timeout_s,
                repeatable=repeatable,
            )
        except ServerFailed as failed:
            message = failed.answer.fields.get("message")
            if failed.answer.fields.get("status") != "error" or not isinstance(message, str):
                raise
            raise EnvError(f"{path} failed in the sandbox: {message[:200]}", kind=ErrorKind.GUEST) from failed
        self._good(answer, f"answer {method} {path}")
        return answer
