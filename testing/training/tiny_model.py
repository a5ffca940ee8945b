"""A tiny random checkpoint and recorded trajectories, shared by the model tests."""

from __future__ import annotations

import functools
import hashlib
import io
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Action, Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.render.renderer import Renderer

SIZE = (512, 384)


@functools.cache
def tiny_folder() -> Path:
    """One random checkpoint for the whole test process."""
    return make_tiny(Path(tempfile.mkdtemp(prefix="deskhand-tiny-")), seed=7)


def renderer(**prompt: object) -> Renderer:
    """The renderer of `tiny_folder` with a prompt."""
    return Renderer.from_folder(tiny_folder(), ModelConfig(), PromptConfig(**prompt))


def screenshot(seed: int, size: tuple[int, int] = SIZE) -> bytes:
    """A PNG with a few coloured rectangles."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", size, tuple(int(c) for c in rng.integers(0, 255, 3)))
    draw = ImageDraw.Draw(image)
    for _ in range(4):
        x, y = int(rng.integers(0, size[0] - 80)), int(rng.integers(0, size[1] - 60))
        draw.rectangle((x, y, x + 70, y + 50), fill=tuple(int(c) for c in rng.integers(0, 255, 3)))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


class Frames:
    """Screenshots by digest, as the frame store keeps them."""

    def __init__(self) -> None:
        self.pngs: dict[str, bytes] = {}

    def store(self, png: bytes) -> str:
        digest = hashlib.sha256(png).hexdigest()
        self.pngs[digest] = png
        return digest

    def pixels(self, reader: Renderer):
        """sha256 -> patch values."""
        return lambda digest: reader.pixels(self.pngs[digest])


def demonstration(
    frames: Frames,
    actions: list[Action],
    *,
    instruction: str = "Click the red button.",
    first_seed: int = 0,
    **task,
) -> Trajectory:
    """An oracle trajectory over drawn screenshots."""
    turns = []
    for index, action in enumerate(actions):
        digest = frames.store(screenshot(first_seed + index))
        observation = Observation(
            sha256=digest, width=SIZE[0], height=SIZE[1], text=instruction if index == 0 else ""
        )
        turns.append(Turn(index=index, source="oracle", observation=observation, action=action))
    return Trajectory(
        trajectory_id=1,
        group_id=1,
        task=Task(task_id="t", instruction=instruction, **task),
        source="oracle",
        status=TrajectoryStatus.TERMINATED,
        turns=tuple(turns),
        score=1.0,
        reward=1.0,
    )
