"""SGLang servers take weights: the same call to all of them at once, each with its own ranks of the group.

SGLang loads by transformers' names and fuses matrices itself. It checks shapes while loading; names it does
not know it skips, so they are compared before (`names`) with what its process wrote (`sglang.parameters`).
"""

import asyncio
import logging
from typing import Any, TypeVar

from training.contracts.weight_requests import Bucket, Check, Join
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.http_client import AsyncSglang
from training.sampler.sglang.parameter_names_file import read_names
from training.sampler.sglang.server_endpoints import Call, SglangError, SglangRefused
from training.sampler.sglang.server_pool import ServerPool, ServerSlot
from training.sampler.weights.engine_tensor_names import check_sglang_names
from training.weights.errors import WeightsRefused

logger = logging.getLogger(__name__)

T = TypeVar("T")

LEAVE_S = 10.0
"""How long a server gets to leave a group."""


class SglangReceiver:
    """Implements `training.sampler.weights.receiver.Receiver`."""

    def __init__(self, servers: ServerPool) -> None:
        self._servers = servers
        self._group: str | None = None
        self._members: list[AsyncSglang] = []
        """Who joined it; a restarted server has a new client."""

    def servers(self) -> list[AsyncSglang]:
        """The clients of now, in a fixed order. Raises WeightsRefused while one is not there."""
        absent = [slot.number + 1 for slot in self._servers.slots if not slot.ready.is_set()]
        if absent or self._servers.failure is not None:
            raise WeightsRefused(f"SGLang server {', '.join(map(str, absent))} is not ready")
        return [slot.client for slot in self._servers.slots]

    @property
    def ranks_per_server(self) -> int:
        """Tensor-parallel processes of each."""
        return max(1, len(self._servers.slots[0].gpus))

    def needs_weights(self) -> bool:
        """True when a server was started again and the weights that it should have were never in a folder."""
        return any(slot.is_behind for slot in self._servers.slots)

    async def check(self, request: Check) -> None:
        """All servers run the same model: the first one speaks for them."""
        self.servers()
        try:
            theirs = read_names(self._servers.image_folder)
        except OSError as error:
            raise WeightsRefused(f"the SGLang server did not say which weights it has: {error}") from error
        check_sglang_names([name for name, _ in request.weights], theirs)

    async def join(self, request: Join) -> None:
        """Ranks 1 ... n, server by server."""
        self._group, self._members = request.group, self.servers()
        await self._all(
            server_endpoints.join_group(
                address=request.address,
                port=request.port,
                rank_offset=1 + slot * self.ranks_per_server,
                world_size=request.world_size,
                group=request.group,
                backend=request.backend,
            )
            for slot in range(len(self.servers()))
        )

    async def begin(self) -> None:
        """A server that has started since would end at the first bucket: it knows no group."""
        if self._group is not None and self.servers() != self._members:
            raise WeightsRefused("a server was started again since it joined the group")
        self.servers()

    async def take(self, request: Bucket) -> None:
        """nccl: receive what the trainer broadcasts; ipc: copy from its memory."""
        count = len(self.servers())
        if request.channel == "nccl":
            if self._group is None:
                raise WeightsRefused("stage: a bucket before the servers have joined")
            call = server_endpoints.load_broadcast(
                request.names, [request.dtype] * len(request.names), request.shapes, group=self._group
            )
            await self._all([call] * count)
            return
        ranks = self.ranks_per_server
        if len(request.handles) < count * ranks:
            raise WeightsRefused(
                f"handles: {len(request.handles)} trainer ranks for {count * ranks} engine ranks"
            )
        await self._all(
            server_endpoints.load_tensors(request.handles[slot * ranks : (slot + 1) * ranks])
            for slot in range(count)
        )

    async def finish(self, policy_version: int) -> None:
        """The prefix cache holds keys and values of the old weights."""
        count = len(self.servers())
        await self._all([server_endpoints.flush_cache()] * count)
        await self._all([server_endpoints.name_version(policy_version)] * count)

    async def leave(self) -> None:
        """A server that is stuck in a broadcast does not answer and is ended: its watch starts it again."""
        group, self._group = self._group, None
        members, self._members = self._members, []
        if group is None:
            return
        slots = [slot for slot in self._servers.slots if slot.client in members]
        await asyncio.gather(*(self._leave(slot, group) for slot in slots))

    async def _leave(self, slot: ServerSlot, group: str) -> None:
        try:
            async with asyncio.timeout(LEAVE_S):
                await slot.client.run(server_endpoints.leave_group(group))
        except SglangRefused:
            return  # it was in no such group
        except (SglangError, TimeoutError):
            logger.warning("SGLang server %s is stuck in a weight sync and is started again", slot.number + 1)
            await asyncio.to_thread(slot.server.stop)

    async def _all(self, wanted: Any) -> None:
        """One call per server, at once. The first failure is raised while others may still be waiting."""
        pairs = zip(self.servers(), wanted, strict=True)
        await asyncio.gather(*(self._ask(call, server) for server, call in pairs))

    @staticmethod
    async def _ask(call: Call[T], server: AsyncSglang) -> T:
        try:
            return await server.run(call)
        except SglangError as error:
            raise WeightsRefused(f"{server.url}: {error}") from error
