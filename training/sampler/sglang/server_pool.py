"""The SGLang servers of one policy server: start, watch, restart.

    starting -> ready -> (ended) -> starting ... -> given up

A server that ends is started again, on the weights that were last read from disk, a bounded number of times;
requests that wait for its answer are sent again (`training.sampler.engines.sglang_engine`). Runs in one event
loop; servers are children of its thread.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from training.sampler.engine import EngineError
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.http_client import AsyncSglang, SglangError
from training.sampler.sglang.server_process import Launch, SglangServer, Weights

log = logging.getLogger("sglang servers")
LOOK_EVERY_S = 0.5
PROBE_EVERY_S = 10.0
MAX_SILENT_PROBES = 6
"""A server whose HTTP side answers nothing for a minute is as good as dead."""


@dataclass(slots=True, kw_only=True)
class ServerSlot:
    """Where a server runs; the server itself changes with every restart."""

    number: int
    gpus: tuple[str, ...]
    """CUDA_VISIBLE_DEVICES; empty = what this process sees."""
    server: SglangServer
    weights: Weights
    """What the server loaded from disk last."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    is_behind: bool = False
    """It runs, but newer weights than those of its folder came from memory: it waits for a folder."""

    @property
    def client(self) -> AsyncSglang:
        return self.server.client

    async def load(self, weights: Weights) -> None:
        """Take `weights` from disk; nothing is generated meanwhile. Raises SglangError."""
        if not weights.adapter:
            await self.client.run(server_endpoints.load_from_disk(weights.folder, weights.policy_version))
        else:
            if self.weights.adapter_name == weights.adapter_name:  # the same version again: its name is taken
                await self.client.run(server_endpoints.unload_adapter(weights.adapter_name))
                self.weights = self.weights.base
            await self.client.run(server_endpoints.load_adapter(weights.adapter_name, weights.adapter))
            await self.client.run(server_endpoints.name_version(weights.policy_version))
        before, self.weights = self.weights, weights
        if before.adapter:
            await self.client.run(server_endpoints.unload_adapter(before.adapter_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLimits:
    """How long and how often."""

    start_timeout_s: float
    max_restarts: int
    """Of all servers together."""


class ServerPool:
    """See the module's docstring."""

    def __init__(
        self,
        launch: Launch,
        weights: Weights,
        gpus: list[tuple[str, ...]],
        limits: RestartLimits,
        on_failure: Callable[[], None],
    ) -> None:
        """Start one server per entry of `gpus`; `on_failure` is called once when they are given up."""
        self.weights = weights
        """What a restarted server starts with."""
        self.version = weights.policy_version
        """That all must have before they generate; newer than `weights` when it came from memory."""
        self.failure: EngineError | None = None
        """Why they were given up; `ready` events are then set."""
        self.num_restarts = 0
        self._launch, self._limits, self._on_failure = launch, limits, on_failure
        self.slots = [
            ServerSlot(
                number=number,
                gpus=own,
                server=SglangServer(launch, weights, number=number, gpus=own),
                weights=weights,
            )
            for number, own in enumerate(gpus)
        ]
        self._watches: list[asyncio.Task[None]] = []

    @property
    def image_folder(self) -> Path:
        """What this process and the servers share: the spool."""
        return self._launch.image_folder

    async def start(self, progress: Callable[[str], None]) -> None:
        """Until all are ready; `progress` gets what they are at. Raises EngineError when one is not."""
        self._watches = [asyncio.create_task(self._watch(slot)) for slot in self.slots]
        while not all(slot.ready.is_set() for slot in self.slots):
            progress(self.status())
            await asyncio.sleep(LOOK_EVERY_S)
        self.check()

    def status(self) -> str:
        """One sentence for people: which servers are not ready, what they are at and for how long."""
        parts = []
        for slot in self.slots:
            if not slot.ready.is_set():
                seconds = time.monotonic() - slot.server.started_at
                parts.append(
                    f"SGLang server {slot.number + 1} of {len(self.slots)}: "
                    f"{slot.server.stage()} ({seconds:.0f} s)"
                )
        return "; ".join(parts) or "ready"

    def ready(self) -> list[ServerSlot]:
        """Those that are up."""
        return [] if self.failure else [slot for slot in self.slots if slot.ready.is_set()]

    def check(self) -> None:
        """Raises EngineError when the servers were given up."""
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await asyncio.gather(*(asyncio.to_thread(slot.server.stop) for slot in self.slots))
        for slot in self.slots:
            await slot.client.close()

    async def _watch(self, slot: ServerSlot) -> None:
        """The life of one place; ends when the servers are given up."""
        try:
            while True:
                await self._wait_ready(slot)
                await self._catch_up(slot)
                slot.ready.set()
                log.info("server %s is ready at %s", slot.number, slot.server.url)
                reason = await self._wait_end(slot)
                slot.ready.clear()
                await self._restart(slot, reason)
        except EngineError as error:
            self._give_up(error)

    async def _wait_ready(self, slot: ServerSlot) -> None:
        deadline = time.monotonic() + self._limits.start_timeout_s
        while True:
            server = slot.server
            if (code := server.exit_code()) is not None:
                await self._restart(slot, f"ended with code {code} while starting ({server.stage()})")
                continue
            if time.monotonic() > deadline:
                raise EngineError(
                    f"engine.start_timeout_s: SGLang server {slot.number + 1} was not ready within "
                    f"{self._limits.start_timeout_s:.0f} s; it was at: {server.stage()}\n{server.tail()}"
                )
            with contextlib.suppress(SglangError):
                await server.client.run(server_endpoints.health())
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _catch_up(self, slot: ServerSlot) -> None:
        """New weights came while it started, or before, from memory."""
        while slot.weights != (newest := self.weights) or newest.policy_version < self.version:
            slot.is_behind = newest.policy_version < self.version
            if slot.server.exit_code() is not None:
                return
            if slot.is_behind:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            try:
                await slot.load(newest)
            except SglangError as error:
                # Its answers go on to say whose weights they are; the next sync finds it with the others.
                log.warning("server %s keeps version %s: %s", slot.number, slot.weights, error)
                return

    async def _wait_end(self, slot: ServerSlot) -> str:
        """Why the server is no use any more."""
        silent, probe_due = 0, time.monotonic() + PROBE_EVERY_S
        while True:
            if (code := slot.server.exit_code()) is not None:
                return f"ended with code {code}"
            if time.monotonic() >= probe_due:
                probe_due = time.monotonic() + PROBE_EVERY_S
                try:
                    await slot.client.run(server_endpoints.model_info())
                    silent = 0
                except SglangError:
                    silent += 1
                if silent >= MAX_SILENT_PROBES:
                    return f"answered nothing for {silent * PROBE_EVERY_S:.0f} s"
            await asyncio.sleep(LOOK_EVERY_S)

    async def _restart(self, slot: ServerSlot, reason: str) -> None:
        """Raises EngineError when that was once too often."""
        self.num_restarts += 1
        words = f"SGLang server {slot.number + 1} {reason}"
        if self.num_restarts > self._limits.max_restarts:
            raise EngineError(
                f"{words}; engine.max_restarts = {self._limits.max_restarts} is used up. "
                f"The end of {slot.server.log_path}:\n{slot.server.tail()}"
            )
        log.warning("%s; starting it again (%s)", words, self.num_restarts)
        old = slot.server
        await asyncio.to_thread(old.stop)
        await old.client.close()
        slot.weights = self.weights.base
        slot.server = SglangServer(
            self._launch, slot.weights, number=slot.number, gpus=slot.gpus, start=self.num_restarts
        )

    def _give_up(self, error: EngineError) -> None:
        if self.failure is None:
            self.failure = error
            log.error("%s", error)
            self._on_failure()
        for slot in self.slots:
            slot.ready.set()
