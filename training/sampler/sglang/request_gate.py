"""When requests may go to the SGLang servers.

    open -> held (weights arrive) -> open
    open -> asleep (a colocated trainer has the memory) -> open
    open -> alone (prompts are scored) -> open

Whatever closes the gate cuts the requests that run; they are answered with what they have.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from training.sampler.engine import EngineError
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.http_client import SglangError, SglangUnreachable
from training.sampler.sglang.server_pool import ServerPool

CUT_S = 10.0
"""How long running requests get to end at a weight sync before SGLang's slower way."""
ABORT_EVERY_S = 0.02


class RequestGate:
    """Of all servers of one engine; for one event loop."""

    def __init__(self, servers: ServerPool) -> None:
        self.is_held = False
        self.is_asleep = False
        self._servers = servers
        self._open = asyncio.Event()
        self._open.set()
        self._scores = asyncio.Lock()
        self._num_inside = 0
        """Requests that wait for a server's answer."""

    async def wait(self) -> None:
        """Until requests may be sent."""
        await self._open.wait()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Around a request that `_cut` ends."""
        self._num_inside += 1
        try:
            yield
        finally:
            self._num_inside -= 1

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nothing is generated inside; what is cut goes on afterwards. Raises EngineError while held.

        SGLang 0.5.16 ends when one batch has requests with chosen ids and requests without
        ('list' object has no attribute 'tolist').
        """
        async with self._scores:
            if self.is_held or self.is_asleep:
                raise EngineError("the servers are held for new weights: nothing can be scored now")
            self._open.clear()
            try:
                await self._cut()
                yield
            finally:
                if not (self.is_held or self.is_asleep):
                    self._open.set()

    async def hold(self) -> None:
        """No request is in a server when it returns, and their caches are empty."""
        if self.is_held:
            return
        self.is_held = True
        self._open.clear()
        try:
            await self._cut()
            await self._on_all(server_endpoints.pause())
            await self._on_all(server_endpoints.flush_cache())
        except SglangError as error:
            raise EngineError(f"the servers cannot be held: {error}") from error

    async def release(self) -> None:
        """Undo `hold`."""
        try:
            if not self.is_asleep:
                await self._on_all(server_endpoints.resume())
        except SglangError as error:
            raise EngineError(f"the servers cannot go on: {error}") from error
        finally:
            self.is_held = False
            self._open_when_free()

    async def sleep(self) -> None:
        """Weights, keys and values leave the GPUs."""
        if self.is_asleep:
            return
        self.is_asleep = True
        self._open.clear()
        try:
            await self._on_all(server_endpoints.pause())
            await self._on_all(server_endpoints.flush_cache())
            await self._on_all(server_endpoints.release_memory())
        except SglangError as error:
            raise EngineError(f"the servers cannot go to sleep: {error}") from error

    async def wake(self) -> None:
        """Undo `sleep`; weights are back as they were."""
        if not self.is_asleep:
            return
        try:
            await self._on_all(server_endpoints.resume_memory())
            if not self.is_held:
                await self._on_all(server_endpoints.resume())
        except SglangError as error:
            raise EngineError(f"the servers cannot wake up: {error}") from error
        self.is_asleep = False
        self._open_when_free()

    def _open_when_free(self) -> None:
        if not (self.is_held or self.is_asleep or self._scores.locked()):
            self._open.set()

    async def _cut(self) -> None:
        """End what runs: SGLang's own pause looks for the end of aborted requests once a second."""
        deadline = time.monotonic() + CUT_S
        while self._num_inside and time.monotonic() < deadline:
            # Again and again: a request on its way is not known to the server yet.
            await self._on_all(server_endpoints.abort())
            await asyncio.sleep(ABORT_EVERY_S)

    async def _on_all(self, call: server_endpoints.Call[Any]) -> None:
        """The same call to every server that is up; one that ends meanwhile is no error, it starts anew."""
        found = await asyncio.gather(
            *(slot.client.run(call) for slot in self._servers.ready()), return_exceptions=True
        )
        for error in found:
            if isinstance(error, BaseException) and not isinstance(error, SglangUnreachable):
                raise error
