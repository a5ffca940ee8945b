"""HTTP client of one SGLang server (0.5.16). Torch-free.

A call is a value (`training.sglang.calls`), so that one table of calls serves both clients:

    await AsyncSglang(url).run(calls.pause("abort"))        Sglang(url).run(calls.pause("abort"))
"""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

import httpx

from training.sglang.calls import Call, SglangError, SglangRefused, SglangUnreachable

T = TypeVar("T")

__all__ = ["AsyncSglang", "Sglang", "SglangError", "SglangRefused", "SglangUnreachable"]

NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60.0)
"""SGLang queues by itself; a limit here would only hide requests from its scheduler."""


class AsyncSglang:
    """One server, for asyncio; any number of calls at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.AsyncClient(base_url=url, limits=NO_LIMITS, trust_env=False)

    async def run(self, call: Call[T]) -> T:
        """The answer. Raises SglangRefused (error answer) or SglangUnreachable (no answer)."""
        try:
            answer = await self._http.request(
                call.method, call.path, json=call.body, timeout=httpx.Timeout(call.timeout_s, connect=10.0)
            )
        except httpx.TransportError as error:
            raise SglangUnreachable(self.url, call.path, error) from error
        return call.answer(answer.status_code, answer.content)

    async def close(self) -> None:
        await self._http.aclose()


class Sglang:
    """One server, blocking; for the trainer and for scripts."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, limits=NO_LIMITS, trust_env=False)

    def run(self, call: Call[T]) -> T:
        """As `AsyncSglang.run`."""
        try:
            answer = self._http.request(
                call.method, call.path, json=call.body, timeout=httpx.Timeout(call.timeout_s, connect=10.0)
            )
        except httpx.TransportError as error:
            raise SglangUnreachable(self.url, call.path, error) from error
        return call.answer(answer.status_code, answer.content)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
