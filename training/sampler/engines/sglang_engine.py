"""The engine `sglang`: servers of their own, each batching whatever comes.

Token-in: every request carries the whole context as token ids and names its images; SGLang's prefix cache
makes the earlier turns cheap, so a trajectory stays with one server. What it reports is what the trainer
computes: logprobs after banning and temperature, over the whole vocabulary.

- A request that a weight sync aborts is answered with what it has; the rest is drawn by the new weights, and
  every token remembers whose it is.
- A request whose server ended is drawn anew from its first token.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from PIL import Image

from training.contracts.config import ExperimentConfig
from training.render.token_sequences import Renderer
from training.sampler.canary import blank_png, canary_png, canary_sequence, engine_canary
from training.sampler.engines.engine import EngineError, Sampled, Sampling, Sequence
from training.sampler.sglang import http_calls
from training.sampler.sglang.generation import Drawn, Usage, image_entries, sampling_parameters
from training.sampler.sglang.http_client import SglangError, SglangRefused, SglangUnreachable
from training.sampler.sglang.request_gate import Gate
from training.sampler.sglang.scoring import score_by_all
from training.sampler.sglang.screenshot_decoders import PictureProcesses
from training.sampler.sglang.screenshot_spool import Spool, Spooled
from training.sampler.sglang.server_arguments import Surroundings, gpu_sets, launch_of
from training.sampler.sglang.server_pool import Patience, Place, Servers
from training.sampler.sglang.server_process import Weights

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
    around: Surroundings,
    *,
    progress: Callable[[str], None],
    on_failure: Callable[[], None],
) -> SglangEngine:
    """Running servers behind an engine that has seen its canary. Raises EngineError, ValueError or OSError.

    `progress` gets sentences for people; `on_failure` is called when the servers are given up later on.
    """
    progress("reading tokenizer and image settings")
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    spool = Spool(renderer.levels())
    patience = Patience(
        start_timeout_s=config.engine.start_timeout_s, max_restarts=config.engine.max_restarts
    )
    launch = launch_of(config, model, around, spool.folder)
    gpus = gpu_sets(config, around.gpus)
    servers = Servers(launch, Weights(folder=model, policy_version=0), gpus, patience, on_failure)
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
    """See the module's docstring; implements `training.sampler.engines.engine.Engine`."""

    def __init__(self, renderer: Renderer, servers: Servers, spool: Spool) -> None:
        self.servers = servers
        self.usage = Usage()
        self.policy_version = servers.weights.policy_version
        self.renderer = renderer
        self._spool = spool
        self._pictures = PictureProcesses()
        self._sticky: dict[str, Place] = {}
        self._gate = Gate(servers)

    async def prepare(self, png: bytes) -> Spooled:
        """The screenshot in the folder that the servers read. Raises OSError for what is no image."""
        started = time.monotonic()
        try:
            return await self._spool.keep(png, self._write)
        finally:
            self.usage.prepare_s += time.monotonic() - started

    async def draw(self, sequence: Sequence, sampling: Sampling) -> Sampled:
        """Raises EngineError when the servers were given up, or refuse the request."""
        drawn = Drawn()
        failed = 0
        while True:
            await self._gate.wait()
            place = await self._place_of(sequence.sequence_id)
            try:
                await self._continue(place, sequence, sampling, drawn)
            except SglangUnreachable as error:
                failed += 1
                await self._after_failure(failed, error)
            except SglangRefused as error:
                failed += 1
                if error.status < 500:
                    raise EngineError(f"SGLang refused the request: {error}") from error
                await self._after_failure(failed, error)
            else:
                if not drawn.is_cut or len(drawn.token_ids) >= sampling.max_tokens:
                    break
                self.usage.num_continued += 1
                continue
            drawn = Drawn()
            self.usage.num_redrawn += 1
        sequence.token_ids += drawn.token_ids
        return Sampled(
            token_ids=drawn.token_ids,
            logprobs=drawn.logprobs,
            finish_reason="stop" if drawn.has_stopped else "length",
            policy_version=min(drawn.versions),
            policy_versions=drawn.versions,
        )

    async def score(self, sequence: Sequence, start: int) -> list[float]:
        """By every server; they must agree."""
        self.servers.check()
        async with self._gate.alone():
            return await score_by_all(self.servers.places, sequence, start, self.renderer.banned_ids)

    async def check_canary(self) -> None:
        """Raises EngineError when the servers do not see the image of the canary."""
        if self.renderer.prompt.text_only:
            await engine_canary(self, self.renderer)
            return
        rendered = canary_sequence(self.renderer)
        start, _ = rendered.spans[0]
        scores = []
        for png in (canary_png(), blank_png()):
            sequence = Sequence(
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
        places = self.servers.ready()
        found = await asyncio.gather(
            *(
                place.client.run(http_calls.load_from_disk(weights.folder, policy_version))
                for place in places
            ),
            return_exceptions=True,
        )
        refusals = [error for error in found if isinstance(error, SglangRefused)]
        if not refusals:
            # A server that ended meanwhile starts again with these.
            self.servers.weights = weights
            for place in places:
                place.weights = weights
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

    def describe(self) -> dict[str, Any]:
        """Also the addresses that a weight sync speaks to."""
        return {
            "name": "sglang",
            "policy_version": self.policy_version,
            "servers": [
                {
                    "url": place.server.url,
                    "gpus": list(place.gpus),
                    "pid": place.server.process.pid,
                    "is_ready": place.ready.is_set(),
                }
                for place in self.servers.places
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
        await self._pictures.close()
        self._spool.close()

    async def _write(self, png: bytes, path: Path) -> None:
        """The pixels as `Renderer.resized` makes them."""
        with Image.open(io.BytesIO(png)) as image:
            size = self.renderer.resized_size(image.size)
        await self._pictures.write(png, path, size, self.renderer.image_processor.resample)

    async def _continue(self, place: Place, sequence: Sequence, sampling: Sampling, drawn: Drawn) -> None:
        """One request for what is still missing."""
        missing = replace(sampling, max_tokens=sampling.max_tokens - len(drawn.token_ids))
        parameters = sampling_parameters(
            missing, stop_id=self.renderer.stop_id, banned_ids=self.renderer.banned_ids
        )
        context = sequence.token_ids + drawn.token_ids
        call = http_calls.generate(context, parameters, images=image_entries(sequence))
        started = time.monotonic()
        with self._gate.inside():
            answer = await place.client.run(call)
        drawn.take(answer)
        self.usage.add(answer, time.monotonic() - started)

    async def _place_of(self, sequence_id: str) -> Place:
        """The server that has the trajectory's prefix; a new one goes where the fewest are."""
        place = self._sticky.get(sequence_id)
        if place is None:
            while len(self._sticky) >= MAX_STICKY:
                del self._sticky[next(iter(self._sticky))]
            loads = [0] * len(self.servers.places)
            for other in self._sticky.values():
                loads[other.number] += 1
            place = self._sticky[sequence_id] = self.servers.places[loads.index(min(loads))]
        await place.ready.wait()
        self.servers.check()
        return place

    async def _after_failure(self, failed: int, error: SglangError) -> None:
        """Wait until another attempt makes sense. Raises EngineError when there were enough."""
        self.servers.check()
        if failed >= MAX_ATTEMPTS:
            raise EngineError(f"SGLang failed {failed} times: {error}") from error
        await asyncio.sleep(min(RETRY_PAUSE_S * 2 ** (failed - 1), MAX_PAUSE_S))
