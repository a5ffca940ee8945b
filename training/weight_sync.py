"""Weight sync: the trainer's weights into the engine after every step, and proof that they arrived.

    gather -> plain transformers folder weights/vN -> POST /weights -> canary -> drift

drift = mean |trainer - engine| logprob over the completion tokens of the canary, nats.
"""

from __future__ import annotations

import base64
import io
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

from training.checkpoints import export_model
from training.coordinator import Canary, Coordinator
from training.frames import FramePixels
from training.interrupts import on_main
from training.rendering import Renderer
from training.samples import Sample
from training.trainer import Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync cost and showed."""

    seconds: float
    drift: float | None
    """None when the policy server has no canary."""

    def metrics(self) -> dict[str, float]:
        values = {"sync/seconds": self.seconds}
        return values if self.drift is None else values | {"sync/drift": self.drift}


@dataclass(slots=True, kw_only=True)
class WeightSync:
    """Pushes weights; holds the newest two versions on disk."""

    trainer: Trainer
    coordinator: Coordinator | None
    """None on ranks other than 0."""
    renderer: Renderer
    pixels: FramePixels
    source: Path
    """Checkpoint folder whose config and tokenizer files are copied."""
    directory: Path

    def push(self, policy_version: int) -> SyncReport:
        """Sync `policy_version` and compare the canary. A collective."""
        started = time.monotonic()
        world = self.trainer.world
        folder = self.directory / f"v{policy_version}"
        dtype = getattr(torch, self.trainer.config.model.dtype)
        export_model(self.trainer.policy.model, self.source, folder, world, dtype)
        canary = on_main(world, lambda: self._send(policy_version, folder))
        drift = None if canary is None else self.drift(canary)
        return SyncReport(seconds=time.monotonic() - started, drift=drift)

    def _send(self, policy_version: int, folder: Path) -> Canary | None:
        assert self.coordinator is not None, "rank 0 has a coordinator"
        canary = self.coordinator.sync_weights(policy_version, str(folder))
        for old in self.directory.glob("v*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return canary

    def drift(self, canary: Canary) -> float:
        """Mean |trainer - engine| over the canary's completion tokens, nats. A collective."""
        sample = canary_sample(canary, self.renderer, self.pixels)
        policy = self.trainer.policy
        usual, policy.temperature = policy.temperature, canary.temperature
        try:
            (ours,) = self.trainer.token_logprobs([sample])
        finally:
            policy.temperature = usual
        theirs = [value for value, bit in zip(canary.logprobs, canary.loss_mask, strict=True) if bit]
        return sum(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / max(len(theirs), 1)


def canary_sample(canary: Canary, renderer: Renderer, pixels: FramePixels) -> Sample:
    """The canary as a sample; its images enter the pixel cache under their place."""
    names, grids = [], []
    for index, encoded in enumerate(canary.images):
        png = base64.b64decode(encoded)
        with Image.open(io.BytesIO(png)) as image:
            grids.append(renderer.image_grid(image.size))
        names.append(f"canary-{index}")
        pixels.add(names[-1], png)
    return Sample(
        trajectory_id=0,
        group_id=0,
        token_ids=canary.token_ids,
        loss_mask=canary.loss_mask,
        behaviour_logprobs=canary.logprobs,
        policy_versions=(canary.policy_version,) * len(canary.token_ids),
        images=tuple(names),
        grids=tuple(grids),
    )
