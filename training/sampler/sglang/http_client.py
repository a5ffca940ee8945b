"""HTTP client of one SGLang server (0.5.16).

A call is a value (`training.sampler.sglang.server_endpoints`):

    await AsyncSglang(url).run(server_endpoints.pause())

The policy server's one event loop stands between answers and the next requests of a whole batch: aiohttp and
orjson take a fifth of the time that httpx and json took for a context of 8 000 tokens.
"""

from typing import TypeVar

import aiohttp
import orjson

from training.sampler.sglang.server_endpoints import Body, Call, SglangError, SglangRefused, SglangUnreachable

T = TypeVar("T")

__all__ = ["AsyncSglang", "SglangError", "SglangRefused", "SglangUnreachable"]

CONNECT_S = 10.0
KEEP_S = 4.0
"""An idle connection is kept this long: SGLang closes it after five seconds."""
JSON = {"Content-Type": "application/json"}


class AsyncSglang:
    """One server, for one event loop; any number of calls at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http: aiohttp.ClientSession | None = None

    async def run(self, call: Call[T]) -> T:
        """The answer. Raises SglangRefused (error answer) or SglangUnreachable (no answer)."""
        limit = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=CONNECT_S)
        try:
            async with self._session().request(
                call.method, self.url + call.path, data=encoded(call.body), headers=JSON, timeout=limit
            ) as answer:
                status, content = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SglangUnreachable(self.url, call.path, error) from error
        return call.answer(status, content)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _session(self) -> aiohttp.ClientSession:
        """Made by the first call: it belongs to the event loop that runs then."""
        if self._http is None:
            # SGLang queues by itself; a limit here would only hide requests from its scheduler.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S)
            self._http = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self._http


def encoded(body: Body | None) -> bytes | None:
    """A call's body as JSON."""
    return None if body is None else orjson.dumps(body)
