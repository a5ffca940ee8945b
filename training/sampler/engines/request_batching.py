"""Joins concurrent requests for the in-process engine, which generates one batch at a time.

Requests that arrive while a batch runs, or within GATHER_S of each other, form the next batch; a request
does not join a batch that runs. Only the engine's thread touches the engine.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from training.contracts.turn_trace import TurnPart
from training.sampler.engine import (
    EngineBuild,
    EngineError,
    EngineSequence,
    SampledCompletion,
    SamplingSettings,
)
from training.sampler.stopwatch import Stopwatch

GATHER_S = 0.004
"""How long the first request of a batch waits for company."""
MAX_BATCH = 32
"""Sequences of one forward pass at most."""
MAX_PREPARED = 64
"""Screenshots whose patch values are kept; one of 512 x 384 has 1.2 MB."""
T = TypeVar("T")


class InProcessEngine(Protocol):
    """An engine in this process; not thread-safe."""

    policy_version: int

    def build(self) -> EngineBuild: ...

    def generate(
        self, sequences: list[EngineSequence], samplings: list[SamplingSettings]
    ) -> list[SampledCompletion]:
        """Continue every sequence until its stop token; appends the generated tokens to `token_ids`."""
        ...

    def score(self, sequence: EngineSequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from position `start` on, nats."""
        ...

    def load_weights(self, folder: Path, policy_version: int) -> None:
        """Take the weights of a checkpoint folder. Raises ValueError when they do not fit."""
        ...


@dataclass(kw_only=True, slots=True)
class PendingRequest:
    """A sequence whose completion was asked for."""

    sequence: EngineSequence
    sampling: SamplingSettings
    done: asyncio.Future[SampledCompletion]
    arrived_at: float = field(default_factory=time.perf_counter)


class BatchingEngine:
    """See the module's docstring; implements `training.sampler.engine.Engine`."""

    def __init__(self, engine: InProcessEngine, pixels: Callable[[bytes], np.ndarray]) -> None:
        """`pixels`: PNG bytes -> patch values, e.g. `Renderer.pixels`."""
        self.engine = engine
        self._pixels = pixels
        self._prepared: OrderedDict[bytes, np.ndarray] = OrderedDict()
        """SHA-256 of a PNG -> its patch values; the ones used last."""
        self._waiting: list[PendingRequest] = []
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        self._batches: asyncio.Task[None] | None = None
        self._free = asyncio.Event()
        """Cleared while the engine is held."""
        self._free.set()
        self._pauses = Stopwatch()
        """Runs while the engine is held, takes weights or scores: what is waiting then waits for that."""

    @property
    def policy_version(self) -> int:
        """Of the weights that generate the next batch."""
        return self.engine.policy_version

    async def prepare(self, png: bytes) -> np.ndarray:
        """Patch values. [rows, values]

        Members of a group begin with the same screen, and many an action changes nothing on it.
        """
        digest = hashlib.sha256(png).digest()
        if digest not in self._prepared:
            self._prepared[digest] = await asyncio.to_thread(self._pixels, png)
        self._prepared.move_to_end(digest)
        while len(self._prepared) > MAX_PREPARED:
            self._prepared.popitem(last=False)
        return self._prepared[digest]

    async def generate(self, sequence: EngineSequence, sampling: SamplingSettings) -> SampledCompletion:
        """Raises EngineError when the batch failed."""
        if self._batches is None:
            self._batches = asyncio.create_task(self._run_batches())
        done: asyncio.Future[SampledCompletion] = asyncio.get_running_loop().create_future()
        sequence.waited_s = self._pauses.lap()
        self._waiting.append(PendingRequest(sequence=sequence, sampling=sampling, done=done))
        self._arrived.set()
        # Shielded: the engine may already be at work on it when the client goes away.
        return await asyncio.shield(done)

    async def score(self, sequence: EngineSequence, start: int) -> list[float]:
        return await self.call(self._pausing, self.engine.score, sequence, start)

    async def load_weights(self, folder: Path, policy_version: int) -> None:
        """Between two batches."""
        await self.call(self._pausing, self.engine.load_weights, folder, policy_version)

    async def hold(self) -> None:
        """A running batch is finished first: it is one forward pass after the other in a thread."""
        if not self._free.is_set():
            return
        self._free.clear()
        await self.call(self._pauses.start)

    async def release(self, policy_version: int) -> None:
        self.engine.policy_version = policy_version
        if not self._free.is_set():
            self._pauses.stop()
            self._free.set()

    async def build(self) -> EngineBuild:
        return self.engine.build()

    def describe(self) -> dict[str, Any]:
        return {"name": "transformers", "policy_version": self.policy_version, "servers": []}

    async def sleep(self) -> None:
        """This engine has no GPU of its own to give back."""

    async def wake(self) -> None:
        """Nothing to undo."""

    async def close(self) -> None:
        """Stop taking batches."""
        if self._batches is not None:
            self._batches.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _run_batches(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(GATHER_S)
            await self._free.wait()
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            if not self._waiting:
                self._arrived.clear()
            began_at = time.perf_counter()
            queued = [began_at - one.arrived_at - one.sequence.waited_s() for one in batch]
            try:
                sampled = await self.call(
                    self.engine.generate, [one.sequence for one in batch], [one.sampling for one in batch]
                )
            except Exception as error:  # noqa: BLE001 - the edge: every waiting request gets the error
                for one in batch:
                    one.done.set_exception(EngineError(f"the engine failed: {error!r}"))
                continue
            for one, result, queued_s in zip(batch, sampled, queued, strict=True):
                result.spent_ms[TurnPart.QUEUE] = 1000 * max(0.0, queued_s)
                one.done.set_result(result)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something on the engine's thread, between two batches."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _pausing(self, function: Callable[..., T], *arguments: Any) -> T:
        with self._pauses.running():
            return function(*arguments)
