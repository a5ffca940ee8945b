"""The engine `sglang`: servers of their own, each batching whatever comes.

Token-in: every request carries the whole context as token ids and names its images; SGLang's prefix cache
makes the earlier turns cheap, so a trajectory stays with one server. What it reports is what the trainer
computes: logprobs after banning and temperature, over the whole vocabulary.

- A request that a weight sync aborts is answered with the tokens it has; the new weights generate the
  remaining ones, and every token keeps the version that generated it.
- A request whose server ended is generated again from its first token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from training.contracts.config import ExperimentConfig
from training.contracts.turn_trace import TurnPart
from training.model.lora import ADAPTER_CONFIG
from training.render.renderer import Renderer
from training.sampler.canary import blank_png, canary_png, canary_sequence, engine_canary
from training.sampler.engine import (
    EngineBuild,
    EngineError,
    EngineSequence,
    SampledCompletion,
    SamplingSettings,
)
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.generate_requests import (
    PartialCompletion,
    Usage,
    image_entries,
    sampling_parameters,
)
from training.sampler.sglang.http_client import SglangError, SglangRefused, SglangUnreachable
from training.sampler.sglang.request_gate import RequestGate
from training.sampler.sglang.scoring import score_by_all
from training.sampler.sglang.screenshot_decoders import ScreenshotDecoders
from training.sampler.sglang.screenshot_spool import ScreenshotSpool, SpooledScreenshot
from training.sampler.sglang.server_arguments import SglangInstallation, gpu_sets, launch_of
from training.sampler.sglang.server_build import build_of
from training.sampler.sglang.server_pool import RestartLimits, ServerPool, ServerSlot
from training.sampler.sglang.server_process import Weights
from training.sampler.stopwatch import Stopwatch
from training.untrusted.pictures import open_picture

MAX_ATTEMPTS = 10
"""Of one completion whose server keeps ending or refusing."""
RETRY_PAUSE_S = 1.0
"""Doubled each time up to MAX_PAUSE_S: a server that dies takes some seconds to be noticed."""
MAX_PAUSE_S = 8.0
MAX_STICKY = 8192
"""Trajectories whose server is remembered."""
SEES_IMAGE = 1e-4
"""The logprobs of a completion differ at least by this when its screenshot is another. Nats."""


async def start_sglang(
    model: str,
    config: ExperimentConfig,
    installation: SglangInstallation,
    *,
    attempt: int,
    progress: Callable[[str], None],
    on_failure: Callable[[], None],
) -> SglangEngine:
    """Running servers behind an engine that has seen its canary. Raises EngineError, ValueError or OSError.

    `progress` gets sentences for people; `on_failure` is called when the servers are given up later on.
    """
    progress("reading tokenizer and image settings")
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    spool = ScreenshotSpool(renderer.levels() if renderer.sees else None)
    limits = RestartLimits(
        start_timeout_s=config.engine.start_timeout_s, max_restarts=config.engine.max_restarts
    )
    launch = launch_of(config, model, installation, spool.folder, attempt)
    gpus = gpu_sets(config, installation.gpus)
    servers = ServerPool(launch, Weights(folder=model, policy_version=0), gpus, limits, on_failure)
    engine = SglangEngine(renderer, servers, spool)
    try:
        await servers.start(progress)
        progress("compiling kernels with a first completion")
        await engine.check_canary()
    except BaseException:
        await engine.close()
        raise
    return engine


class SglangEngine:
    """See the module's docstring; implements `training.sampler.engine.Engine`."""

    def __init__(self, renderer: Renderer, servers: ServerPool, spool: ScreenshotSpool) -> None:
        self.servers = servers
        self.usage = Usage()
        self.policy_version = servers.weights.policy_version
        self.renderer = renderer
        self._spool = spool
        self._decoders = ScreenshotDecoders()
        self._sticky: dict[str, ServerSlot] = {}
        self._gate = RequestGate(servers)

    async def prepare(self, png: bytes) -> SpooledScreenshot:
        """The screenshot in the folder that the servers read. Raises OSError for what is no image."""
        started = time.monotonic()
        try:
            return await self._spool.keep(png, self._write)
        finally:
            self.usage.prepare_s += time.monotonic() - started

    async def generate(self, sequence: EngineSequence, sampling: SamplingSettings) -> SampledCompletion:
        """Raises EngineError when the servers were given up, or refuse the request."""
        partial = PartialCompletion()
        failed = 0
        waits, started = Stopwatch(), time.monotonic()
        sequence.waited_s = waits.lap()
        while True:
            with waits.running():
                await self._gate.wait()
                slot = await self._slot_of(sequence.sequence_id)
            try:
                await self._continue(slot, sequence, sampling, partial)
            except SglangUnreachable as error:
                failed += 1
                await self._after_failure(failed, error)
            except SglangRefused as error:
                failed += 1
                if error.status < 500:
                    raise EngineError(f"SGLang refused the request: {error}") from error
                await self._after_failure(failed, error)
            else:
                if not partial.is_cut or len(partial.token_ids) >= sampling.max_tokens:
                    break
                self.usage.num_continued += 1
                continue
            partial = PartialCompletion()
            self.usage.num_restarted += 1
            waits.count_all()
        sequence.token_ids += partial.token_ids
        generated_s = time.monotonic() - started - waits.seconds
        return SampledCompletion(
            token_ids=partial.token_ids,
            logprobs=partial.logprobs,
            finish_reason="stop" if partial.has_stopped else "length",
            policy_version=min(partial.versions),
            policy_versions=partial.versions,
            spent_ms={TurnPart.GENERATE: 1000 * max(0.0, generated_s)},
            top=partial.top,
        )

    async def score(self, sequence: EngineSequence, start: int) -> list[float]:
        """By every server; they must agree."""
        self.servers.check()
        async with self._gate.alone():
            return await score_by_all(self.servers.slots, sequence, start, self.renderer.banned_ids)

    async def check_canary(self) -> None:
        """Raises EngineError when the servers do not see the image of the canary."""
        rendered = canary_sequence(self.renderer)
        if not rendered.images:
            await engine_canary(self, self.renderer)
            return
        start, _ = rendered.spans[0]
        scores = []
        for png in (canary_png(), blank_png()):
            sequence = EngineSequence(
                sequence_id="canary",
                token_ids=rendered.token_ids,
                pixels=[await self.prepare(png)],
                grids=rendered.grids,
            )
            scores.append(await self.score(sequence, start))
        if max(abs(a - b) for a, b in zip(*scores, strict=True)) < SEES_IMAGE:
            raise EngineError("the SGLang servers answer a picture and a blank one alike: they see no image")

    async def load_weights(self, folder: Path, policy_version: int) -> None:
        """From disk. Raises ValueError when a server refuses them, EngineError when none took them."""
        was_held = self._gate.is_held
        await self.hold()
        weights = Weights(folder=str(folder), policy_version=policy_version)
        if (folder / ADAPTER_CONFIG).is_file():
            base = self.servers.weights.folder
            weights = Weights(folder=base, policy_version=policy_version, adapter=str(folder))
        slots = self.servers.ready()
        found = await asyncio.gather(*(slot.load(weights) for slot in slots), return_exceptions=True)
        refusals = [error for error in found if isinstance(error, SglangRefused)]
        if not refusals:
            # A server that ended meanwhile starts again with these.
            self.servers.weights = weights
        if not was_held:
            await self.release(self.policy_version if refusals else policy_version)
        elif not refusals:
            self.policy_version = policy_version
        if refusals:
            raise ValueError(f"{folder}: SGLang cannot load it: {refusals[0]}") from refusals[0]

    async def hold(self) -> None:
        """Requests that run are answered with what they have; they go on after `release`."""
        await self._gate.hold()

    async def release(self, policy_version: int) -> None:
        """All servers that are up run `policy_version` now."""
        self.policy_version = policy_version
        self.servers.version = policy_version
        await self._gate.release()

    async def build(self) -> EngineBuild:
        return await build_of(self.servers)

    def describe(self) -> dict[str, Any]:
        """Also the addresses that a weight sync speaks to."""
        return {
            "name": "sglang",
            "policy_version": self.policy_version,
            "servers": [
                {
                    "url": slot.server.url,
                    "gpus": list(slot.gpus),
                    "pid": slot.server.process.pid,
                    "is_ready": slot.ready.is_set(),
                }
                for slot in self.servers.slots
            ],
            "image_folder": str(self._spool.folder),
            "num_restarts": self.servers.num_restarts,
            "usage": asdict(self.usage),
        }

    async def sleep(self) -> None:
        """Running requests are cut and go on after `wake`."""
        await self._gate.sleep()

    async def wake(self) -> None:
        await self._gate.wake()

    async def close(self) -> None:
        await self.servers.close()
        await self._decoders.close()
        self._spool.close()

    async def _write(self, png: bytes, path: Path) -> None:
        """The pixels as `Renderer.resized` makes them."""
        with open_picture(png) as image:
            size = self.renderer.resized_size(image.size)
        await self._decoders.write(png, path, size, self.renderer.image_processor.resample)

    async def _continue(
        self,
        slot: ServerSlot,
        sequence: EngineSequence,
        sampling: SamplingSettings,
        partial: PartialCompletion,
    ) -> None:
        """One request for what is still missing."""
        missing = replace(sampling, max_tokens=sampling.max_tokens - len(partial.token_ids))
        parameters = sampling_parameters(
            missing, stop_ids=self.renderer.stop_ids, banned_ids=self.renderer.banned_ids
        )
        context = sequence.token_ids + partial.token_ids
        adapter = slot.weights.adapter_name
        call = server_endpoints.generate(
            context,
            parameters,
            images=image_entries(sequence),
            adapter=adapter,
            num_top=sampling.top_logprobs,
        )
        started = time.monotonic()
        with self._gate.inside():
            answer = await slot.client.run(call)
        partial.take(answer)
        self.usage.add(answer, time.monotonic() - started)

    async def _slot_of(self, sequence_id: str) -> ServerSlot:
        """The server that has the trajectory's prefix; a new one goes where the fewest are."""
        slot = self._sticky.get(sequence_id)
        if slot is None:
            while len(self._sticky) >= MAX_STICKY:
                del self._sticky[next(iter(self._sticky))]
            loads = [0] * len(self.servers.slots)
            for other in self._sticky.values():
                loads[other.number] += 1
            slot = self._sticky[sequence_id] = self.servers.slots[loads.index(min(loads))]
        await slot.ready.wait()
        self.servers.check()
        return slot

    async def _after_failure(self, failed: int, error: SglangError) -> None:
        """Wait until another attempt makes sense. Raises EngineError when there were enough."""
        self.servers.check()
        if failed >= MAX_ATTEMPTS:
            raise EngineError(f"SGLang failed {failed} times: {error}") from error
        await asyncio.sleep(min(RETRY_PAUSE_S * 2 ** (failed - 1), MAX_PAUSE_S))
