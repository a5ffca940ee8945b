"""How the client speaks with a server: address, token, team, errors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

TIMEOUT_S = 60.0
BUSY = 503
MAX_RETRIES = 4
KEY = "Idempotency-Key"


class ApiError(Exception):
    """Raised when the server refuses; `fields` are the problems by field, where it named any."""

    def __init__(self, status: int, code: str, message: str, fields: dict[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.fields = fields


class Unreachable(Exception):
    """Raised when there is no answer from the server."""


class Transport:
    """A connection to one server, as the owner of a token."""

    def __init__(self, url: str, token: str, *, team: str = "", timeout_s: float = TIMEOUT_S) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        if team:
            headers["Deskhand-Team"] = team
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=timeout_s)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def once(self, key: str = "") -> Iterator[str]:
        """The call within does its work once: sent again with this key it gets the first answer for 24 h."""
        key = key or str(uuid.uuid4())
        self._http.headers[KEY] = key
        try:
            yield key
        finally:
            del self._http.headers[KEY]

    def _call(self, method: str, path: str, **sent: Any) -> Any:
        """The JSON that an operation answers; None without any. Raises ApiError, Unreachable."""
        answer = self._sent(lambda: self._http.request(method, path, **_request(sent)))
        return answer.json() if answer.content else None

    def _stream(self, method: str, path: str, **sent: Any) -> Iterator[bytes]:
        """A file, piece by piece. Raises ApiError, Unreachable."""
        try:
            with self._http.stream(method, path, **_request(sent)) as answer:
                if answer.is_error:
                    answer.read()
                    raise _error(answer)
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise Unreachable(f"{self.url}: {error}") from error

    def _sent(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """The good answer. A busy server did nothing, so it is asked again."""
        import time

        for attempt in range(MAX_RETRIES + 1):
            try:
                answer = send()
            except httpx.TransportError as error:
                raise Unreachable(f"{self.url}: {error}") from error
            if answer.status_code != BUSY or attempt == MAX_RETRIES:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        if answer.is_error or answer.is_redirect:
            raise _error(answer)
        return answer


def _request(sent: dict[str, Any]) -> dict[str, Any]:
    """Keywords of httpx. What is None was left out; a body that could have fields is always sent."""
    given = {where: _given(values) for where, values in sent.items()}
    found: dict[str, Any] = {}
    if "query" in given:
        found["params"] = given["query"]
    if "files" in given:
        found["files"] = given["files"]
        found["data"] = given.get("form", {})
    elif "body" in given:
        found["json"] = given["body"]
    return found


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _error(answer: httpx.Response) -> ApiError:
    try:
        said = answer.json()["error"]
        return ApiError(answer.status_code, said["code"], said["message"], said.get("fields", {}))
    except (ValueError, KeyError, TypeError):
        return ApiError(answer.status_code, "unknown", f"The server answered {answer.status_code}.", {})


def _segment(value: object) -> str:
    """A value as one part of an address."""
    return quote(str(value), safe="")
