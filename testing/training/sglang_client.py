"""Blocking calls to one SGLang server, for benchmarks."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

import httpx

from training.sampler.sglang.http_client import CONNECT_S, JSON, encoded
from training.sampler.sglang.server_endpoints import Call, SglangUnreachable

T = TypeVar("T")


class Sglang:
    """One server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, trust_env=False)

    def run(self, call: Call[T]) -> T:
        """As `training.sampler.sglang.http_client.AsyncSglang.run`."""
        limit = httpx.Timeout(call.timeout_s, connect=CONNECT_S)
        try:
            answer = self._http.request(
                call.method, call.path, content=encoded(call.body), headers=JSON, timeout=limit
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
