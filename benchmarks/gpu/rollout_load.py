"""What asks for turns in `rollout_throughput`: threads in a few processes, one trajectory each at a time.

Two ways with the same words, pictures and lengths: through the policy server as an env worker does, and the
bare requests straight to SGLang.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.gpu.policy_process import TOKEN
from benchmarks.gpu.screens import screen_png
from training.config import ModelConfig, PromptConfig
from training.engine_sglang import BANNED
from training.policy_client import PolicyClient
from training.rendering import Renderer
from training.sglang import calls
from training.sglang.client import Sglang
from training.sglang.pictures import write_pixels

INSTRUCTION = (
    "Open the settings, find the sound page, and turn the output of the second device down to a half."
)
BICUBIC = 3
"""The image processor's resampling, by Pillow's number; screens of 1312x736 stay as they are."""
CARRIED_OUT = "The action was carried out. This is the screen now."


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
    turns: int
    max_tokens: int
    size: tuple[int, int]


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

    started: float
    """time.monotonic, which all processes of a machine share."""
    ended: float
    turn: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """-1 through the policy server, which counts in total."""


_renderers: dict[str, Renderer] = {}


class Load:
    """Processes that stay for all cases: importing takes longer than a case."""

    def __init__(self, num_processes: int, plan: Plan) -> None:
        self._num = num_processes
        self._pool = ProcessPoolExecutor(num_processes, mp_context=get_context("spawn"))
        list(self._pool.map(_prepare, [plan] * num_processes))

    def run(self, plan: Plan, talks: list[Talk], *, concurrent: int, direct: bool) -> list[Told]:
        """Play all, `concurrent` at once."""
        num = min(self._num, concurrent)
        shares = [talks[part::num] for part in range(num)]
        widths = [concurrent // num + (part < concurrent % num) for part in range(num)]
        jobs = [
            self._pool.submit(_play_share, plan, share, width, direct)
            for share, width in zip(shares, widths, strict=True)
        ]
        return [told for job in jobs for told in job.result()]

    def draw(self, screens: list[tuple[str, int]], plan: Plan) -> None:
        """(name, seed) of each: a PNG for the clients, pixels for the direct requests."""
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
    for name, seed in screens:
        png = screen_png(seed, plan.size)
        (Path(plan.screens) / f"{name}.png").write_bytes(png)
        size = _renderers[plan.model].resized_size(plan.size)
        write_pixels(png, f"{plan.screens}/{name}.npy", size, BICUBIC)


def _play_share(plan: Plan, talks: list[Talk], width: int, direct: bool) -> list[Told]:
    _prepare(plan)
    play = _play_directly if direct else _play_through_policy
    with ThreadPoolExecutor(max(1, width)) as threads:
        return [told for part in threads.map(lambda talk: play(plan, talk), talks) for told in part]


def _play_through_policy(plan: Plan, talk: Talk) -> list[Told]:
    client = PolicyClient(plan.policy_url, TOKEN, timeout_s=300.0)
    found = []
    for turn, picture in enumerate(talk.pictures):
        png = (Path(plan.screens) / f"{picture}.png").read_bytes()
        started = time.monotonic()
        completion = client.complete(
            talk.name, turn_index=turn, text=CARRIED_OUT if turn else INSTRUCTION, screenshot=png,
            temperature=1.0, max_tokens=plan.max_tokens,
        )  # fmt: skip
        found.append(
            Told(
                started=started, ended=time.monotonic(), turn=turn, cached_tokens=-1,
                prompt_tokens=completion.num_prompt_tokens, completion_tokens=len(completion.token_ids),
            )
        )  # fmt: skip
    client.forget(talk.name)
    client.close()
    return found


def _play_directly(plan: Plan, talk: Talk) -> list[Told]:
    renderer = _renderers[plan.model]
    grid = list(renderer.image_grid(plan.size))
    parameters = {
        "temperature": 1.0,
        "max_new_tokens": plan.max_tokens,
        "stop_token_ids": [renderer.stop_id],
        "logit_bias": {str(token): BANNED for token in renderer.banned_ids},
        "skip_special_tokens": False,
        "no_stop_trim": True,
    }
    context: list[int] = []
    images: list[dict] = []
    found = []
    with Sglang(plan.server_urls[talk.number % len(plan.server_urls)]) as server:
        for turn, picture in enumerate(talk.pictures):
            stopped = not context or context[-1] == renderer.stop_id
            context += renderer.render_turn(
                turn, CARRIED_OUT if turn else INSTRUCTION, plan.size, instruction=INSTRUCTION,
                previous_stopped=stopped,
            )  # fmt: skip
            images.append({"file": f"{picture}.npy", "sha256": f"{hash_of(picture)}", "grid": grid})
            started = time.monotonic()
            answer = server.run(calls.generate(context, parameters, images=images))
            found.append(
                Told(
                    started=started, ended=time.monotonic(), turn=turn, prompt_tokens=answer.prompt_tokens,
                    completion_tokens=len(answer.token_ids), cached_tokens=answer.cached_tokens,
                )
            )  # fmt: skip
            context += answer.token_ids
    return found


def hash_of(picture: str) -> str:
    """Any 64 hex digits that differ between pictures."""
    return picture.encode().hex().ljust(16, "0")[-16:].ljust(64, "0")
