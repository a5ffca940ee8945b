"""Screens of recorded desktops for `rl_step`: PNGs in a frames folder, as many as a run shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.gpu.screens import mixed_png, screen
from training.contracts.types import Observation

NUM_DRAWN = 6
"""Screens that each process draws; all others are put together of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Screens:
    """Screens in an order of their own; when all were shown they begin again."""

    folder: Path
    digests: tuple[str, ...]
    size: tuple[int, int]
    """Width, height."""

    def of(self, group: int, member: int, turn: int, *, members: int, turns: int) -> tuple[str, bytes]:
        """(digest, PNG). Members of a group share the first screen, as on real desktops."""
        first = group * (1 + members * (turns - 1))
        place = first if turn == 0 else first + 1 + member * (turns - 1) + turn - 1
        digest = self.digests[place % len(self.digests)]
        return digest, path_of(self.folder, digest).read_bytes()

    def seen(self, digest: str, text: str) -> Observation:
        """What the trainer is told of a screen."""
        return Observation(sha256=digest, width=self.size[0], height=self.size[1], text=text)


def draw_screens(folder: Path, count: int, size: tuple[int, int], processes: int) -> Screens:
    """Write `count` different screens to `folder`."""
    parts = [range(part, count, processes) for part in range(processes)]
    if processes == 1:
        found = [_write(folder, parts[0], size)]
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(_write, [folder] * processes, parts, [size] * processes))
    digests = tuple(digest for part in found for digest in part)
    assert len(set(digests)) == count, "screens need content of their own"
    return Screens(folder=folder, digests=digests, size=size)


def path_of(folder: Path, digest: str) -> Path:
    """Where a frames folder has it."""
    return folder / digest[:2] / f"{digest}.png"


def _write(folder: Path, numbers: Sequence[int], size: tuple[int, int]) -> list[str]:
    drawn = [screen(seed, size) for seed in range(NUM_DRAWN)]
    digests = []
    for number in numbers:
        png = mixed_png(drawn, number)
        digests.append(hashlib.sha256(png).hexdigest())
        path = path_of(folder, digests[-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
    return digests
