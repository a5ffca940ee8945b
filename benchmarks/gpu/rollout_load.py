"""What asks for turns in `rollout_throughput`: threads in a few processes, one trajectory each at a time.

Three ways with the same words, pictures and lengths, so that every turn has as many tokens in and out:

    policy        through the policy server, as an env worker does
    direct        straight to SGLang in its own form, as its users call it: token ids with one pad per image,
                  and the PNGs' paths (no base64); SGLang decodes them
    direct_ready  straight to SGLang in the policy server's form, every screenshot decoded beforehand
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from benchmarks.gpu.policy_process import TOKEN
from benchmarks.gpu.screens import mixed_png, screen
from testing.training.sglang_client import Sglang
from training.contracts.config import ModelConfig, PromptConfig
from training.render.renderer import Renderer
from training.sampler.engine import SamplingSettings
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.generate_requests import sampling_parameters
from training.sampler.sglang.screenshot_decoders import write_pixels
from workers.env.policy_client import PolicyClient

INSTRUCTION = (
    "Open the settings, find the sound page, and turn the output of the second device down to a half."
)
BICUBIC = 3
"""The image processor's resampling, by Pillow's number; screens of 1312x736 stay as they are."""
CARRIED_OUT = "The action was carried out. This is the screen now."
NUM_DRAWN = 6
"""Screens that each process draws; all others are put together of them."""
Way = Literal["policy", "direct", "direct_ready"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What all threads of a case need to know."""

    policy_url: str
    server_urls: tuple[str, ...]
    screens: str
    """Folder with PNGs NAME.png."""
    model: str
    pixels: dict[str, int]
    style: str
    max_tokens: int
    size: tuple[int, int]
    temperature: float = 1.0
    until: float = float("inf")
    """No turn begins later than this. time.monotonic, which all processes of a machine share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """One trajectory to be played."""

    name: str
    number: int
    pictures: tuple[str, ...]
    """Names of its screens. [turns]"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One turn that was answered."""

    talk: int
    turn: int
    started: float
    """time.monotonic."""
    ended: float
    prompt_tokens: int
    cached_tokens: int
    """-1 through the policy server, which counts in total."""
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


_renderers: dict[str, Renderer] = {}


class Load:
    """Processes that stay for all cases: importing takes longer than a case."""

    def __init__(self, num_processes: int, plan: Plan, cores: set[int]) -> None:
        """`cores`: where they run, apart from the servers."""
        self._num = num_processes
        self._pool = ProcessPoolExecutor(
            num_processes, mp_context=get_context("spawn"), initializer=os.sched_setaffinity,
            initargs=(0, cores),
        )  # fmt: skip
        list(self._pool.map(_prepare, [plan] * num_processes))

    def run(self, plan: Plan, talks: list[Talk], *, concurrent: int, way: Way) -> list[Told]:
        """Play all, `concurrent` at once."""
        num = min(self._num, concurrent)
        shares = [talks[part::num] for part in range(num)]
        widths = [concurrent // num + (part < concurrent % num) for part in range(num)]
        jobs = [
            self._pool.submit(_play_share, plan, share, width, way)
            for share, width in zip(shares, widths, strict=True)
        ]
        return [told for job in jobs for told in job.result()]

    def draw(self, screens: list[tuple[str, int]], plan: Plan) -> None:
        """(name, number) of each: a PNG for the clients, pixels for the requests of way direct_ready."""
        jobs = [self._pool.submit(_draw, screens[part :: self._num], plan) for part in range(self._num)]
        for job in jobs:
            job.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def _prepare(plan: Plan) -> None:
    time.sleep(0.5)  # so that every process gets one
    if plan.model not in _renderers:
        model = ModelConfig(min_pixels=plan.pixels["min_pixels"], max_pixels=plan.pixels["max_pixels"])
        prompt = PromptConfig(style="computer-use" if plan.style == "computer-use" else "first-desk")
        _renderers[plan.model] = Renderer.from_folder(plan.model, model, prompt)


def _draw(screens: list[tuple[str, int]], plan: Plan) -> None:
    _prepare(plan)
    drawn = [screen(seed, plan.size) for seed in range(NUM_DRAWN)]
    size = _renderers[plan.model].resized_size(plan.size)
    for name, number in screens:
        png = mixed_png(drawn, number)
        (Path(plan.screens) / f"{name}.png").write_bytes(png)
        write_pixels(png, f"{plan.screens}/{name}.npy", size, BICUBIC)


def _play_share(plan: Plan, talks: list[Talk], width: int, way: Way) -> list[Told]:
    _prepare(plan)

    def play(talk: Talk) -> list[Told]:
        if way == "policy":
            return _play_through_policy(plan, talk)
        return _play_directly(plan, talk, way)

    try:
        with ThreadPoolExecutor(max(1, width)) as threads:
            return [told for part in threads.map(play, talks) for told in part]
    except Exception as error:  # noqa: BLE001 - one that cannot be unpickled would break the whole pool
        raise RuntimeError(repr(error)[:1000]) from None


def _play_through_policy(plan: Plan, talk: Talk) -> list[Told]:
    client = PolicyClient(plan.policy_url, TOKEN, timeout_s=300.0)
    found = []
    for turn, picture in enumerate(talk.pictures):
        png = (Path(plan.screens) / f"{picture}.png").read_bytes()
        started = time.monotonic()
        if started > plan.until:
            break
        completion = client.complete(
            talk.name, turn_index=turn, text=CARRIED_OUT if turn else INSTRUCTION, screenshot=png,
            temperature=plan.temperature, max_tokens=plan.max_tokens,
        )  # fmt: skip
        found.append(
            Told(
                talk=talk.number, turn=turn, started=started, ended=time.monotonic(), cached_tokens=-1,
                prompt_tokens=completion.num_prompt_tokens, token_ids=completion.token_ids,
                logprobs=completion.behaviour_logprobs,
            )
        )  # fmt: skip
    client.forget(talk.name)
    return found


def _play_directly(plan: Plan, talk: Talk, way: Way) -> list[Told]:
    renderer = _renderers[plan.model]
    sampling = SamplingSettings(temperature=plan.temperature, max_tokens=plan.max_tokens)
    parameters = sampling_parameters(sampling, stop_ids=renderer.stop_ids, banned_ids=renderer.banned_ids)
    context: list[int] = []
    images: list[Any] = []
    found = []
    with Sglang(plan.server_urls[talk.number % len(plan.server_urls)]) as server:
        for turn, picture in enumerate(talk.pictures):
            stopped = not context or context[-1] == renderer.stop_id
            added = renderer.render_turn(
                turn, CARRIED_OUT if turn else INSTRUCTION, plan.size, instruction=INSTRUCTION,
                previous_stopped=stopped,
            )  # fmt: skip
            context += added if way == "direct_ready" else with_single_pads(added, renderer.image_pad_id)
            images.append(_image(plan, picture, way))
            started = time.monotonic()
            if started > plan.until:
                break
            answer = server.run(server_endpoints.generate(context, parameters, images=images))
            found.append(
                Told(
                    talk=talk.number, turn=turn, started=started, ended=time.monotonic(),
                    prompt_tokens=answer.prompt_tokens, cached_tokens=answer.cached_tokens,
                    token_ids=tuple(answer.token_ids), logprobs=tuple(answer.logprobs),
                )
            )  # fmt: skip
            context += answer.token_ids
    return found


def _image(plan: Plan, picture: str, way: Way) -> Any:
    if way == "direct":
        return f"file://{plan.screens}/{picture}.png"
    grid = list(_renderers[plan.model].image_grid(plan.size))
    return {"file": f"{picture}.npy", "sha256": hash_of(picture), "grid": grid}


def with_single_pads(token_ids: list[int], pad: int) -> list[int]:
    """One pad per image, as SGLang's own processor wants it: it makes as many of it as the image has."""
    before = [0, *token_ids]
    return [token for last, token in zip(before, token_ids, strict=False) if token != pad or last != pad]


def hash_of(picture: str) -> str:
    """Any 64 hex digits that differ between pictures."""
    return picture.encode().hex().ljust(16, "0")[-16:].ljust(64, "0")
