"""An engine that works in batches, behind the interface of one that takes sequences as they come.

Requests that arrive while the engine works, or within a few milliseconds, become one batch. Only the engine
thread touches the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from training.sampler.engines.engine import EngineError, Sampled, Sampling, Sequence

GATHER_S = 0.004
"""How long the first request of a batch waits for company."""
MAX_BATCH = 32
"""Sequences of one forward pass at most."""
T = TypeVar("T")


class BatchEngine(Protocol):
    """An engine in this process; not thread-safe."""

    policy_version: int

    def generate(self, sequences: list[Sequence], samplings: list[Sampling]) -> list[Sampled]:
        """Continue every sequence until its stop token; appends what was drawn to `token_ids`."""
        ...

    def score(self, sequence: Sequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from position `start` on, nats."""
        ...

    def load_weights(self, folder: Path, policy_version: int) -> None:
        """Take the weights of a checkpoint folder. Raises ValueError when they do not fit."""
        ...


@dataclass(kw_only=True, slots=True)
class Waiting:
    """A sequence whose completion was asked for."""

    sequence: Sequence
    sampling: Sampling
    done: asyncio.Future[Sampled]


class BatchedEngine:
    """See the module's docstring; implements `training.sampler.engines.engine.Engine`."""

    def __init__(self, engine: BatchEngine, pixels: Callable[[bytes], np.ndarray]) -> None:
        """`pixels`: PNG bytes -> patch values, e.g. `Renderer.pixels`."""
        self.engine = engine
        self._pixels = pixels
        self._waiting: list[Waiting] = []
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        self._batches: asyncio.Task[None] | None = None
        self._free = asyncio.Event()
        """Cleared while the engine is held."""
        self._free.set()

    @property
    def policy_version(self) -> int:
        """Of the weights that the next batch is drawn with."""
        return self.engine.policy_version

    async def prepare(self, png: bytes) -> np.ndarray:
        """Patch values. [rows, values]"""
        return await asyncio.to_thread(self._pixels, png)

    async def draw(self, sequence: Sequence, sampling: Sampling) -> Sampled:
        """Raises EngineError when the batch failed."""
        if self._batches is None:
            self._batches = asyncio.create_task(self._run_batches())
        done: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(sequence=sequence, sampling=sampling, done=done))
        self._arrived.set()
        # Shielded: the engine may already be at work on it when the client goes away.
        return await asyncio.shield(done)

    async def score(self, sequence: Sequence, start: int) -> list[float]:
        return await self.call(self.engine.score, sequence, start)

    async def load_weights(self, folder: Path, policy_version: int) -> None:
        """Between two batches."""
        await self.call(self.engine.load_weights, folder, policy_version)

    async def hold(self) -> None:
        """A running batch is finished first: it is one forward pass after the other in a thread."""
        self._free.clear()
        await self.call(lambda: None)

    async def release(self, policy_version: int) -> None:
        self.engine.policy_version = policy_version
        self._free.set()

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
            try:
                sampled = await self.call(
                    self.engine.generate, [one.sequence for one in batch], [one.sampling for one in batch]
                )
            except Exception as error:  # noqa: BLE001 - the edge: every waiting request gets the error
                for one in batch:
                    one.done.set_exception(EngineError(f"the engine failed: {error!r}"))
                continue
            for one, result in zip(batch, sampled, strict=True):
                one.done.set_result(result)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something on the engine's thread, between two batches."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
