"""Bodies of requests are read no further than their sender may send.

Django writes a whole body to disk before a view looks at who sends it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async

from webapp.lib.error_pages import error_body

SMALL = 64 << 10
"""What anyone may send, in bytes: forms and small calls."""
LARGE_AT_ONCE = 16
"""Larger bodies that are read at one moment; others wait unread."""
STALL_S = 60.0
"""Longest wait for a body's next part."""

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class BodyRefused(Exception):
    """Raised when a body is too long, or too slow, for who sends it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class BodiesInFront:
    """ASGI application: once a body is not small, `limit_of` says by the headers alone how many bytes its
    sender may send; 0 = the sender is not known."""

    def __init__(self, application: Application, limit_of: Callable[[Scope], int]) -> None:
        self.inner = application
        self._limit_of = sync_to_async(limit_of)
        self._places = asyncio.Semaphore(LARGE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        body = _IncomingBody(scope, receive, self._limit_of, self._places)
        try:
            await body.require_length()
            await self.inner(scope, body.receive, send)
        except BodyRefused as refused:
            answer = json.dumps(error_body(refused.code, str(refused))).encode()
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": refused.status, "headers": headers})
            await send({"type": "http.response.body", "body": answer})
        finally:
            body.close()


class _IncomingBody:
    """Counts the parts of one request's body as they come."""

    def __init__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[dict[str, Any]]],
        limit_of: Callable[[Scope], Awaitable[int]],
        places: asyncio.Semaphore,
    ) -> None:
        self._scope, self._receive, self._limit_of, self._places = scope, receive, limit_of, places
        self._count, self._limit = 0, SMALL
        self._is_whole = self._has_place = False

    async def require_length(self) -> None:
        """Raise BodyRefused for a length that is announced and not allowed, before any of it is read."""
        named = dict(self._scope["headers"]).get(b"content-length", b"")
        if named.isdigit():
            await self._require(int(named))

    async def receive(self) -> dict[str, Any]:
        if self._is_whole:  # what comes is that the browser has left
            return await self._receive()
        try:
            async with asyncio.timeout(STALL_S):
                message = await self._receive()
        except TimeoutError as error:
            raise BodyRefused(408, "slow", f"body: nothing came for {STALL_S:.0f} s") from error
        self._count += len(message.get("body", b""))
        await self._require(self._count)
        self._is_whole = not message.get("more_body", False)
        if self._is_whole:
            self.close()
        return message

    async def _require(self, count: int) -> None:
        if count > self._limit and not self._has_place:
            self._limit = await self._limit_of(self._scope)
            if self._limit:
                await self._places.acquire()
                self._has_place = True
        if count > max(self._limit, SMALL):
            if not self._limit:
                raise BodyRefused(
                    401, "unknown_sender", f"body: longer than {SMALL >> 10} KiB; sign in first"
                )
            raise BodyRefused(413, "too_long", f"body: longer than {self._limit >> 20} MiB")

    def close(self) -> None:
        """The next large body may come."""
        if self._has_place:
            self._places.release()
            self._has_place = False
