"""The policy server of one attempt as a child process, seen from the gpu worker."""

import logging
import os
import secrets
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import httpx
from django.conf import settings

from training.contracts import policy_server as routes
from training.contracts.coordinator import WeightsSynced
from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import Asked, Nothing, ProblemAnswer, Route, loading_message
from training.contracts.weight_requests import WeightsRequest
from webapp.lib.host_links.certificates import make_self_signed
from workers.gpu.child_processes import start_child
from workers.gpu.failure_reason import how_it_ended

log = logging.getLogger(__name__)
SYNC_TIMEOUT_S = 300.0
CERTIFICATE_DAYS = 365
"""Longer than an attempt; each gets a new one."""


class PolicyServerError(Exception):
    """Raised when the policy server does not start, or refuses weights."""


class PolicyServerLoading(PolicyServerError):
    """Raised when it cannot do yet what was asked, since it is still starting; nothing was begun."""


class WeightsRefused(PolicyServerError):
    """Raised when a step of a weight sync cannot be done by this engine."""


class PolicyServer:
    """`python -m training.sampler.server` with a token of its own."""

    def __init__(
        self,
        *,
        model: str,
        config_path: Path,
        folder: Path,
        log_path: Path,
        gpus: Mapping[str, str],
        attempt: int,
    ) -> None:
        """`gpus`: environment variables that say which GPUs it may use (`gpu_placement`)."""
        self.token = secrets.token_urlsafe(24)
        self.starting = "starting the policy server"
        """What it was doing when it was asked last and not ready."""
        self._ended_hosts: dict[str, int] = {}
        self._port_file = folder / "policy.port"
        self._port_file.unlink(missing_ok=True)
        self._address = settings.POLICY_SERVER
        self.certificate, tls = self._make_certificate(folder)
        self._verify = ssl.create_default_context(cadata=self.certificate) if self.certificate else False
        command = [
            sys.executable,
            *("-m", "training.sampler.server"),
            *("--model", model),
            *("--config", str(config_path)),
            *("--attempt", str(attempt)),
            *("--host", self._address.listen),
            *("--port", "0"),
            *("--port-file", str(self._port_file)),
            *tls,
        ]
        env = {
            **os.environ,
            **gpus,
            "DESKHAND_POLICY_TOKEN": self.token,
            "DESKHAND_SGLANG_PYTHON": settings.SGLANG_PYTHON,
            "DESKHAND_SGLANG_PATH": settings.SGLANG_PATH,
        }
        self.child = start_child("policy server", command, log_path=log_path, env=env)

    @property
    def url(self) -> str:
        """Where env workers of all hosts reach it."""
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{self._address.url_host}:{self._port_file.read_text().strip()}"

    def _make_certificate(self, folder: Path) -> tuple[str, list[str]]:
        """This attempt's certificate (PEM) and the server's options for it; none on loopback."""
        if self._address.is_local:
            return "", []
        made = make_self_signed(self._address.advertised, days=CERTIFICATE_DAYS)
        certificate, key = folder / "policy.pem", folder / "policy.key"
        certificate.write_text(made.certificate)
        key.touch(mode=0o600)
        key.write_text(made.key)
        return made.certificate, ["--certificate", str(certificate), "--key", str(key)]

    def is_ready(self) -> bool:
        """True once it answers; raises PolicyServerError when it ended instead."""
        if (code := self.child.exit_code()) is not None:
            raise PolicyServerError(
                f"the policy server {how_it_ended(code)} while loading:\n{self.child.tail()}"
            )
        if not self._has_port():
            return False
        try:
            with self._client(2.0) as client:
                answer = self._send(client, routes.HEALTH, Nothing())
        except httpx.TransportError:
            return False
        if answer.status_code != httpx.codes.OK:
            self.starting = ProblemAnswer.model_validate_json(answer.content).error.message
        return answer.status_code == httpx.codes.OK

    def _has_port(self) -> bool:
        return self._port_file.exists() and bool(self._port_file.read_text().strip())

    def wait_ready(self, keep_going: Callable[[], None], *, limit_s: float) -> None:
        """Poll until ready, calling `keep_going()` (heartbeat; may raise) in between."""
        deadline = time.monotonic() + limit_s
        while not self.is_ready():
            if time.monotonic() > deadline:
                raise PolicyServerError(
                    f"the policy server was not ready within {limit_s:.0f} s; its last words: {self.starting}"
                )
            keep_going()
            time.sleep(0.1)

    def sync_weights(self, request: WeightsRequest) -> WeightsSynced:
        """One step of a weight sync, passed on; with new weights the answer brings the engine's canary.

        Raises PolicyServerError; WeightsRefused when the step was wrong, so that asking again cannot help.
        """
        with self._started_client() as client:
            answered = self._send_when_loaded(client, routes.WEIGHTS, request)
            if answered.is_client_error:
                raise WeightsRefused(f"weights refused: {answered.text[:1000]}")
            if answered.is_error:
                raise PolicyServerError(f"weights not taken: {answered.text[:1000]}")
            answer = routes.WEIGHTS.read_answer(answered.content)
            canary = None
            if request.stage in ("load", "commit"):
                scored = self._send(client, routes.CANARY, Nothing())
                canary = routes.CANARY.read_answer(scored.content) if scored.is_success else None
        return WeightsSynced(**answer.model_dump(), canary=canary)

    def eyes(self, request: EyeTestRequest) -> EyeTestAnswer:
        """What the engine reads in the eye test. Raises PolicyServerError."""
        with self._started_client() as client:
            answered = self._send_when_loaded(client, routes.EYES, request)
        if answered.is_error:
            raise PolicyServerError(f"the eye test failed: {answered.text[:1000]}")
        return routes.EYES.read_answer(answered.content)

    def command_engine(self, command: Literal["sleep", "wake"]) -> None:
        """The engine gives the GPUs' memory, or takes it back. Raises PolicyServerError."""
        with self._started_client() as client:
            route = routes.SLEEP if command == "sleep" else routes.WAKE
            answered = self._send_when_loaded(client, route, Nothing())
        if answered.is_error:
            raise PolicyServerError(f"{command} failed: {answered.text[:1000]}")

    def end_hosts(self, hosts: dict[str, int]) -> None:
        """Tokens of hosts that were revoked open nothing any more; sent when there is news, until it came."""
        if hosts == self._ended_hosts:
            return
        try:
            with self._client(2.0) as client:
                if self._send(client, routes.END_HOSTS, routes.EndedHosts(hosts=hosts)).is_success:
                    self._ended_hosts = dict(hosts)
        except httpx.TransportError as error:
            log.warning("the policy server does not know yet which hosts were revoked: %s", error)

    def needs_weights(self) -> bool:
        """True when a part of the engine was started again and waits for the trainer's weights."""
        try:
            with self._client(2.0) as client:
                health = self._send(client, routes.HEALTH, Nothing())
        except (httpx.TransportError, OSError):
            return False
        return health.is_success and routes.HEALTH.read_answer(health.content).needs_weights

    def _started_client(self) -> httpx.Client:
        """Raises PolicyServerLoading when it does not listen yet."""
        if not self._has_port():
            raise PolicyServerLoading(self.starting)
        return self._client(SYNC_TIMEOUT_S)

    def _send_when_loaded(
        self, client: httpx.Client, route: Route[Asked, Any], request: Asked
    ) -> httpx.Response:
        """As `_send`. Raises PolicyServerLoading."""
        answered = self._send(client, route, request)
        if (message := loading_message(answered.status_code, answered.content)) is not None:
            raise PolicyServerLoading(message)
        return answered

    def _send(self, client: httpx.Client, route: Route[Asked, Any], request: Asked) -> httpx.Response:
        wire = route.write_request(request)
        return client.request(route.method, wire.path, content=wire.body)

    def _client(self, timeout_s: float) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=timeout_s,
            trust_env=False,
            verify=self._verify,
        )
