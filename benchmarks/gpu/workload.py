"""Samples as real trajectories make them: eight turns at 1312 x 736, drawn screens, true lengths."""

from __future__ import annotations

import io
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.gpu.flops import Work
from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.render.renderer import Renderer

SCREEN = (1312, 736)
"""Pixels of a 1920 x 1080 screenshot after its resize: 41 x 23 = 943 image tokens."""
TURNS = 8
SYSTEM_TOKENS = 256
PROMPT_TOKENS = 28
"""Words of a turn's observation and the marks of the chat format, without the image."""
TREE_TOKENS = 943
"""Of a turn's accessibility tree: as many as a screenshot has."""
COMPLETION_TOKENS = 56
GUESS = -math.log(151_936)
"""Behaviour logprob: random weights find every token about equally likely."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Trajectories and where their screens are."""

    samples: list[Sample]
    pixels: ScreenshotCache

    def work(self) -> Work:
        """What one step over all samples computes on; no screen is shown twice."""
        return Work(
            lengths=[len(sample.token_ids) for sample in self.samples],
            patches=[math.prod(grid) for sample in self.samples for grid in sample.grids],
            scored=sum(sample.num_loss_tokens for sample in self.samples),
        )


def make_workload(
    folder: Path, renderer: Renderer, *, count: int, seed: int = 0, screen: tuple[int, int] = SCREEN
) -> Workload:
    """`count` trajectories in groups of four whose PNGs lie in `folder`; lengths differ by up to a tenth.

    The first ones are the same whatever `count` is.
    """
    names = [[f"{number:032x}{turn:032x}" for turn in range(TURNS)] for number in range(count)]
    seeds = {name: [seed, number, turn] for number, row in enumerate(names) for turn, name in enumerate(row)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: _write(folder, one, seeds[one], screen), seeds))
    samples = [
        _sample(renderer, number, row, screen, np.random.default_rng([seed, number]))
        for number, row in enumerate(names)
    ]
    return Workload(samples, ScreenshotCache(renderer, directory=folder))


def _sample(
    renderer: Renderer, number: int, names: list[str], screen: tuple[int, int], rng: np.random.Generator
) -> Sample:
    """A family without a tower reads as many words where the others have an image."""
    sees = renderer.image_pad_id >= 0
    grid = renderer.image_grid(screen) if sees else (0, 0, 0)
    pads = math.prod(grid) // renderer.merge**2 if sees else TREE_TOKENS
    tokens, mask = _words(rng, SYSTEM_TOKENS), [0] * SYSTEM_TOKENS
    for _ in names:
        said = COMPLETION_TOKENS + int(rng.integers(-24, 25))
        seen = [renderer.image_pad_id] * pads if sees else _words(rng, pads)
        prompt = [*_words(rng, PROMPT_TOKENS), *seen]
        tokens += [*prompt, *_words(rng, said)]
        mask += [0] * len(prompt) + [1] * said
    return Sample(
        trajectory_id=number,
        group_id=number // 4,
        token_ids=tuple(tokens),
        loss_mask=tuple(mask),
        behaviour_logprobs=tuple(GUESS * bit for bit in mask),
        policy_versions=tuple(bit - 1 for bit in mask),
        images=tuple(names) if sees else (),
        grids=(grid,) * len(names) if sees else (),
        advantage=1.0 if number % 2 else -1.0,
    )


def _words(rng: np.random.Generator, count: int) -> list[int]:
    return rng.integers(0, 100_000, count).tolist()


def _write(folder: Path, name: str, seed: list[int], screen: tuple[int, int]) -> None:
    """A screen with windows and lines of text on it."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", screen, tuple(rng.integers(0, 255, 3).tolist()))
    pen = ImageDraw.Draw(image)
    for _ in range(12):
        x, y = int(rng.integers(screen[0])), int(rng.integers(screen[1]))
        colour = tuple(rng.integers(0, 255, 3).tolist())
        pen.rectangle((x, y, x + int(rng.integers(40, 500)), y + int(rng.integers(20, 300))), fill=colour)
        pen.text((x + 5, y + 5), f"window {rng.integers(10**9)}", fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    path = folder / name[:2] / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
