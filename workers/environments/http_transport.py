"""JSON over HTTP to rented or remote desktops: which failures are tried again, and what the others mean.

A request that never arrived (no connection) is always tried again. What may have been done is tried again
only when the caller says that a repetition is harmless: a read, or a write whose Idempotency-Key the other
side keeps.
"""

import email.utils
import ipaddress
import json
import logging
import random
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from tenacity import (
    RetryCallState,
    Retrying,
    before_sleep_log,
    retry_if_exception_type,
    stop_after_attempt,
)

from training.outgoing.allowed_connections import (
    AllowedConnections,
    AnswerTooLarge,
    guard,
    read_at_most,
)
from training.outgoing.remote_addresses import RefusedAddress
from workers.desktops.contract import EnvError
from workers.environments.contract import AtCapacity

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
MAX_MESSAGE = 300
MAX_ANSWER_BYTES = 64 << 20
"""A screenshot of 1920 x 1080 is 8 MB at most, in base64 11."""
TRY_AGAIN = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class Answer:
    """What came back, below 500 and not 429."""

    status: int
    content: bytes
    fields: dict[str, Any]
    """The JSON object; empty for anything else."""

    @property
    def message(self) -> str:
        """Its error text."""
        error = self.fields.get("error")
        if isinstance(error, dict):
            error = error.get("message")
        return str(error or self.content[:MAX_MESSAGE].decode(errors="replace") or "no reason given")

    @property
    def code(self) -> str:
        """Its error code, when it names one."""
        error = self.fields.get("error")
        return str((error.get("code") if isinstance(error, dict) else self.fields.get("code")) or "")


class ServerFailed(EnvError):
    """Raised when the other side answered with 5xx, at the last try too."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


class Transport:
    """One base URL with its headers. Not thread-safe."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: dict[str, str],
        timeout_s: float,
        ca_file: str = "",
        attempts: int = 4,
    ) -> None:
        self.base_url = base_url
        self._attempts = attempts
        self._client = httpx.Client(
            base_url=base_url,
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 20.0)),
            verify=_trusted(ca_file),
            # A proxy of the surroundings cannot reach what is inside them.
            trust_env=not _is_near(base_url),
        )
        guard(self._client, AllowedConnections(settings.REMOTE_NETWORKS))

    def close(self) -> None:
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
        repeatable: bool = False,
        may_wait: bool = False,
        final: frozenset[str] = frozenset(),
    ) -> Answer:
        """One request with its repetitions; answers below 500 are returned, whatever they say.

        `may_wait`: 429 raises AtCapacity; otherwise it is a 5xx of which surely nothing was done.
        `final`: error codes of 5xx answers that a repetition would not change.
        Raises AtCapacity, ServerFailed for 5xx, EnvError when there is no answer.
        """
        request = self._client.build_request(
            method, path, json=body, headers=headers, timeout=timeout_s or httpx.USE_CLIENT_DEFAULT
        )
        retrying = Retrying(
            stop=stop_after_attempt(self._attempts),
            retry=retry_if_exception_type(_TryAgain),
            wait=_pause_s,
            before_sleep=before_sleep_log(log, logging.WARNING),
            reraise=True,
        )
        try:
            return retrying(self._once, request, repeatable, may_wait, final)
        except _TryAgain as last:
            raise last.error from last.__cause__

    def _once(
        self, request: httpx.Request, repeatable: bool, may_wait: bool, final: frozenset[str]
    ) -> Answer:
        what = f"{request.method} {request.url.path}"
        try:
            response = self._client.send(request, stream=True)
            content = self._read(response)
        except (RefusedAddress, AnswerTooLarge) as refused:
            raise EnvError(f"{self.base_url}: {refused}", permanent=True) from refused
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            is_untrusted = "CERTIFICATE" in str(error)
            failure = EnvError(f"{self.base_url} cannot be reached: {error}", permanent=is_untrusted)
            raise (failure if is_untrusted else _TryAgain(failure)) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            failure = EnvError(f"{self.base_url} did not answer {what}: {error!r}")
            raise (_TryAgain(failure) if repeatable else failure) from error
        answer = Answer(response.status_code, content, _fields(response, content))
        if answer.status == 429 and may_wait:
            raise at_capacity(answer, response.headers)
        if answer.status < 500 and answer.status != 429:
            return answer
        failure = ServerFailed(
            f"{self.base_url} answered {what} with {answer.status}: {answer.message}", answer
        )
        if answer.status == 429 or (repeatable and answer.status in TRY_AGAIN and answer.code not in final):
            raise _TryAgain(failure, retry_after_s(response.headers.get("retry-after")))
        raise failure

    @staticmethod
    def _read(response: httpx.Response) -> bytes:
        try:
            return read_at_most(response.iter_bytes(), MAX_ANSWER_BYTES)
        finally:
            response.close()


class _TryAgain(Exception):
    """Raised for a failure after which the request is repeated."""

    def __init__(self, error: EnvError, retry_after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after_s = retry_after_s


def _pause_s(state: RetryCallState) -> float:
    """What the other side asked for, else growing pauses, seconds."""
    failed = state.outcome.exception() if state.outcome else None
    asked_s = failed.retry_after_s if isinstance(failed, _TryAgain) else None
    if asked_s is None:
        # Jitter, so that a fleet that failed together does not come back together.
        asked_s = FIRST_PAUSE_S * 2 ** (state.attempt_number - 1) * random.uniform(0.5, 1.0)
    return min(asked_s, LONGEST_PAUSE_S)


def at_capacity(answer: Answer, headers: httpx.Headers) -> AtCapacity:
    """What a 429 says of the place in the queue; unknown where it says nothing sensible."""
    inner = answer.fields.get("error")
    fields = answer.fields | (inner if isinstance(inner, dict) else {})
    position: Any = fields.get("queue_position")
    wait_s: Any = fields.get("wait_s")
    return AtCapacity(
        answer.message,
        retry_after_s=retry_after_s(headers.get("retry-after")),
        position=position if type(position) is int and position > 0 else None,
        wait_s=float(wait_s) if type(wait_s) in (int, float) and 0 <= wait_s < 1e7 else None,
    )


def retry_after_s(text: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date (RFC 9110); None for anything else."""
    if not text:
        return None
    if text.strip().isdecimal():
        return min(float(text), 86_400.0)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _fields(response: httpx.Response, content: bytes) -> dict[str, Any]:
    if "json" not in response.headers.get("content-type", ""):
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _trusted(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise EnvError(f"ca_file {ca_file} cannot be read: {error}", permanent=True) from error


def _is_near(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host
