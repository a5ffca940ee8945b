"""The engine's end of a weight sync: what the policy server does with POST /weights.

    whole --begin--> partial --bucket ...--> partial --commit--> whole
                     partial --abort------> partial --load----> whole

While the weights are partial the engine is held: turns wait, no token is sampled by a mixture of weights.
"""

import asyncio
from pathlib import Path
from typing import Protocol, assert_never

from training.contracts.weight_requests import (
    Abort,
    Begin,
    Bucket,
    Check,
    Commit,
    Join,
    Load,
    WeightsAnswer,
    WeightsRequest,
)
from training.model.lora import ADAPTER_CONFIG
from training.sampler.engine import Engine
from training.weights.errors import WeightsRefused


class Receiver(Protocol):
    """One engine's way of taking weights from memory. All raise WeightsRefused with the engine's words."""

    async def check(self, request: Check) -> None:
        """Compare names (and shapes where the engine tells them) with what the engine holds."""
        ...

    async def join(self, request: Join) -> None:
        """Join the trainer's process group."""
        ...

    async def take(self, request: Bucket) -> None:
        """Put a bucket into the model."""
        ...

    async def finish(self, policy_version: int) -> None:
        """All buckets are in: forget what the old weights computed and name the version."""
        ...

    async def begin(self) -> None:
        """Refuse when what was joined is not what runs now."""
        ...

    async def leave(self) -> None:
        """Leave the process group if there is one; must not wait for peers."""
        ...

    def needs_weights(self) -> bool:
        """True when a part of the engine runs and waits for a folder of weights."""
        ...


class WeightSyncHandler:
    """Requests one after the other; see the module's docstring."""

    def __init__(self, engine: Engine, receiver: Receiver | None) -> None:
        """`receiver`: None for an engine that only reads folders."""
        self.engine = engine
        self.receiver = receiver
        self.is_whole = True
        self._lock = asyncio.Lock()
        self._step: asyncio.Future[None] | None = None
        """What is being handled."""

    async def handle(self, request: WeightsRequest) -> WeightsAnswer:
        """Raises WeightsRefused (a ValueError), OSError for an unreadable folder."""
        async with self._lock:
            if isinstance(request, Load):
                await self._load(request)
            else:
                await self._stream(request)
            return WeightsAnswer(
                policy_version=self.engine.policy_version, is_whole=self.is_whole, idle_s=0.0
            )

    async def _load(self, request: Load) -> None:
        folder = Path(request.path)
        if not any((folder / name).is_file() for name in ("config.json", ADAPTER_CONFIG)):
            raise WeightsRefused(f"path: no checkpoint (config.json) and no adapter in {folder}")
        await self.engine.load_weights(folder, request.policy_version)
        if not self.is_whole:
            await self._whole(request.policy_version)

    async def _stream(self, request: Check | Join | Begin | Bucket | Commit | Abort) -> None:
        receiver = self.receiver
        if receiver is None:
            raise WeightsRefused(
                f"channel: this engine takes weights from disk only, not by {request.channel}"
            )
        match request:
            case Check():
                await receiver.check(request)
            case Join():
                await receiver.leave()
                await receiver.join(request)
            case Begin():
                await receiver.begin()
                await self.engine.hold()
                self.is_whole = False
            case Bucket():
                self._require_begun(request.stage)
                await receiver.take(request)
            case Commit():
                self._require_begun(request.stage)
                await receiver.finish(request.policy_version)
                await self._whole(request.policy_version)
            case Abort():
                await receiver.leave()
            case _:
                assert_never(request)

    def _require_begun(self, stage: str) -> None:
        if self.is_whole:
            raise WeightsRefused(f"stage: {stage} without a begin before it")

    async def _whole(self, policy_version: int) -> None:
        self.is_whole = True
        await self.engine.release(policy_version)

    def needs_weights(self) -> bool:
        """True when the engine cannot generate until the trainer sends weights again."""
        return not self.is_whole or (self.receiver is not None and self.receiver.needs_weights())
