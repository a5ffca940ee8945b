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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from PIL import Image

from training.canary import blank_png, canary_png, canary_sequence, engine_canary
from training.config import ExperimentConfig
from training.engine import EngineError, Sampled, Sampling, Sequence
from training.rendering import Renderer
from training.sglang import calls
from training.sglang.client import SglangError, SglangRefused, SglangUnreachable
from training.sglang.drawing import Drawn, Usage, image_entries, sampling_parameters, without_banned
from training.sglang.pictures import PictureProcesses
from training.sglang.server import Weights
from training.sglang.servers import Patience, Place, Servers
from training.sglang.spool import Spool, Spooled
from training.sglang.start import Surroundings, gpu_sets, launch_of

MAX_ATTEMPTS = 10
"""Of one completion whose server keeps ending or refusing."""
RETRY_PAUSE_S = 1.0
"""Doubled each time up to MAX_PAUSE_S: a server that dies takes some seconds to be noticed."""
MAX_PAUSE_S = 8.0
CUT_S = 10.0
"""How long running requests get to end at a weight sync before SGLang's slower way."""
MAX_STICKY = 8192
"""Trajectories whose server is remembered."""
SEES_IMAGE = 1e-4
"""The logprobs of a completion differ at least by this when its screenshot is another. Nats."""
SAME_WEIGHTS = 0.1
"""Servers whose canary differs by more than this on average do not run the same weights. Nats."""


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
    """See the module's docstring; implements `training.engine.Engine`."""

    def __init__(self, renderer: Renderer, servers: Servers, spool: Spool) -> None:
        self.servers = servers
        self.usage = Usage()
        self.policy_version = servers.weights.policy_version
        self.renderer = renderer
        self._spool = spool
        self._pictures = PictureProcesses()
        self._sticky: dict[str, Place] = {}
        self._open = asyncio.Event()
        """Set while requests may be sent: neither held nor asleep."""
        self._is_held = False
        self._is_asleep = False
        self._scores = asyncio.Lock()
        self._at_servers = 0
        """Requests that wait for a server's answer."""
        self._open.set()

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
            await self._open.wait()
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
        """Logprobs at temperature 1 of the tokens from `start` on, by every server; they must agree.

        SGLang scores a prompt without the bias, so the mass of the banned ids is taken out here.
        """
        self.servers.check()
        async with self._alone():
            places = self.servers.places
            scores = await asyncio.gather(*(self._score(place, sequence, start) for place in places))
        for number, other in enumerate(scores[1:], start=2):
            pairs = list(zip(scores[0], other, strict=True))
            apart = sum(abs(a - b) for a, b in pairs) / len(pairs)
            if apart > SAME_WEIGHTS:
                raise EngineError(f"SGLang servers 1 and {number} do not run the same weights: {apart:.3f}")
        return scores[0]

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Nothing is drawn inside; what is cut goes on afterwards. Raises EngineError while held.

        SGLang 0.5.16 ends when one batch has requests with chosen ids and requests without
        ('list' object has no attribute 'tolist').
        """
        async with self._scores:
            if self._is_held or self._is_asleep:
                raise EngineError("the servers are held for new weights: nothing can be scored now")
            self._open.clear()
            try:
                await self._cut()
                yield
            finally:
                if not (self._is_held or self._is_asleep):
                    self._open.set()

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
        was_held = self._is_held
        await self.hold()
        weights = Weights(folder=str(folder), policy_version=policy_version)
        places = self.servers.ready()
        found = await asyncio.gather(
            *(place.client.run(calls.load_from_disk(weights.folder, policy_version)) for place in places),
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
        if self._is_held:
            return
        self._is_held = True
        self._open.clear()
        try:
            await self._cut()
            await self._on_all(calls.pause("abort"))
            await self._on_all(calls.flush_cache())
        except SglangError as error:
            raise EngineError(f"the servers cannot be held: {error}") from error

    async def _cut(self) -> None:
        """End what runs: SGLang's own pause looks for the end of aborted requests once a second."""
        deadline = time.monotonic() + CUT_S
        while self._at_servers and time.monotonic() < deadline:
            # Again and again: a request on its way is not known to the server yet.
            await self._on_all(calls.abort())
            await asyncio.sleep(0.02)

    async def release(self, policy_version: int) -> None:
        """All servers that are up run `policy_version` now."""
        self.policy_version = policy_version
        self.servers.version = policy_version
        try:
            if not self._is_asleep:
                await self._on_all(calls.resume())
        except SglangError as error:
            raise EngineError(f"the servers cannot go on: {error}") from error
        finally:
            self._is_held = False
            self._open_when_free()

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
        """Running requests are cut and go on after `wake`; weights, keys and values leave the GPUs."""
        if self._is_asleep:
            return
        self._is_asleep = True
        self._open.clear()
        try:
            await self._on_all(calls.pause("abort"))
            await self._on_all(calls.flush_cache())
            await self._on_all(calls.release_memory())
        except SglangError as error:
            raise EngineError(f"the servers cannot go to sleep: {error}") from error

    async def wake(self) -> None:
        """Weights are back as they were before `sleep`."""
        if not self._is_asleep:
            return
        try:
            await self._on_all(calls.resume_memory())
            if not self._is_held:
                await self._on_all(calls.resume())
        except SglangError as error:
            raise EngineError(f"the servers cannot wake up: {error}") from error
        self._is_asleep = False
        self._open_when_free()

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
        self._at_servers += 1
        started = time.monotonic()
        try:
            answer = await place.client.run(
                calls.generate(context, parameters, images=image_entries(sequence))
            )
        finally:
            self._at_servers -= 1
        drawn.take(answer)
        self.usage.add(answer, time.monotonic() - started)

    async def _score(self, place: Place, sequence: Sequence, start: int) -> list[float]:
        await place.ready.wait()
        call = calls.generate(
            sequence.token_ids,
            {"temperature": 1.0, "max_new_tokens": 1},
            images=image_entries(sequence),
            # The first reported position has no logprob, so ask from the one before.
            logprob_start=start - 1,
            chosen_ids=self.renderer.banned_ids,
        )
        try:
            answer = await place.client.run(call)
        except SglangError as error:
            raise EngineError(f"the canary failed: {error}") from error
        count = len(sequence.token_ids) - start
        pairs = zip(answer.input_logprobs[-count:], answer.input_chosen[-count:], strict=True)
        return [without_banned(logprob, list(banned.values())) for logprob, banned in pairs]

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

    async def _on_all(self, call: calls.Call[Any]) -> None:
        """The same call to every server that is up; one that ends meanwhile is no error, it starts anew."""
        found = await asyncio.gather(
            *(place.client.run(call) for place in self.servers.ready()), return_exceptions=True
        )
        for error in found:
            if isinstance(error, BaseException) and not isinstance(error, SglangUnreachable):
                raise error

    def _open_when_free(self) -> None:
        if not (self._is_held or self._is_asleep or self._scores.locked()):
            self._open.set()

    async def _after_failure(self, failed: int, error: SglangError) -> None:
        """Wait until another attempt makes sense. Raises EngineError when there were enough."""
        self.servers.check()
        if failed >= MAX_ATTEMPTS:
            raise EngineError(f"SGLang failed {failed} times: {error}") from error
        await asyncio.sleep(min(RETRY_PAUSE_S * 2 ** (failed - 1), MAX_PAUSE_S))
