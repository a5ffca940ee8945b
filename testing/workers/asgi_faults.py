"""An ASGI layer that makes a good server misbehave on demand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass
class Fault:
    """What happens to the next `times` requests to `path`."""

    path: str
    times: int = 1
    method: str = "POST"
    status: int = 0
    """Answer this instead of the truth."""
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut: str = ""
    """before | after: break the connection before, or after the request was done."""
    delay_s: float = 0.0


class Misbehaving:
    """Applies the first fault that matches, else lets the request through; notes every request."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers, in order of arrival."""

    def seen(self, method: str, path: str) -> list[dict[str, str]]:
        """Headers of the requests of one kind."""
        return [each for verb, at, each in self.requests if (verb, at) == (method, path)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((scope["method"], scope["path"], headers))
        fault = self._next(scope)
        if fault is None:
            await self._inner(scope, receive, send)
            return
        await asyncio.sleep(fault.delay_s)
        if fault.status:
            await _answer(send, fault)
        elif fault.cut:
            if fault.cut == "after":
                await self._inner(scope, receive, _swallow)
            await _break(send)
        else:
            await self._inner(scope, receive, send)

    def _next(self, scope: Scope) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and (fault.method, fault.path) == (scope["method"], scope["path"]):
                fault.times -= 1
                return fault
        return None


async def _swallow(_message: Any) -> None:
    """The answer is lost."""


async def _answer(send: Send, fault: Fault) -> None:
    body = json.dumps(fault.body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **fault.headers}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": fault.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def _break(send: Send) -> None:
    """Promise more than is sent: the server then closes the connection."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]}
    await send(start)
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise ConnectionAbortedError("on demand")
