"""Weight sync: the trainer's weights into the engine after every step, and proof that they arrived.

    channel (nccl, ipc) --fails--> disk -> canary -> drift

drift = mean |trainer - engine| logprob over the completion tokens of the canary, nats. Whatever breaks a
streaming channel in the middle, the engine holds generation until the same version has come from disk.
"""

import base64
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.contracts.config import EngineConfig, ExperimentConfig
from training.contracts.weight_requests import Canary
from training.render.renderer import Renderer
from training.rollouts.coordinator_client import CoordinatorClient
from training.untrusted.pictures import open_picture
from training.update.learner import Learner
from training.weights.channel import Channel, Sender
from training.weights.disk_channel import DiskChannel
from training.weights.errors import SyncFailed
from training.weights.ipc_channel import IpcChannel
from training.weights.nccl_channel import NcclChannel

logger = logging.getLogger(__name__)

MAX_FAILURES = 2
"""Failures of the quick channel in a row after which all later syncs go by disk."""


CHANNELS: dict[str, Callable[[Sender], Channel]] = {
    "disk": DiskChannel,
    "nccl": NcclChannel,
    "ipc": IpcChannel,
}


def channel_name(engine: EngineConfig, device: torch.device) -> str:
    """The channel that `engine.weight_sync` asks for; auto = the quickest that is possible."""
    if engine.weight_sync != "auto":
        return engine.weight_sync
    if device.type != "cuda":
        return "disk"
    # The engine `transformers` lives on the trainer's first GPU.
    is_shared = engine.name == "transformers" or engine.placement == "colocated"
    return "ipc" if is_shared else "nccl"


def num_engine_ranks(engine: EngineConfig) -> int:
    """Processes of the engine that hold (a part of) the model."""
    return max(engine.num_gpus, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync cost and showed."""

    seconds: float
    """Until the engine generates again."""
    drift: float | None
    """None when the policy server has no canary."""
    fell_back: bool = False
    """True when the quick channel failed and the disk had to do."""
    idle_s: float | None = None
    """Seconds in which the engine had no request since the sync before; None for the first."""

    def metrics(self) -> dict[str, float]:
        values = {"sync/seconds": self.seconds, "sync/fell_back": float(self.fell_back)}
        if self.drift is not None:
            values["sync/drift"] = self.drift
        if self.idle_s is not None:
            values["async/engine_idle_s"] = self.idle_s
        return values


@dataclass(slots=True, kw_only=True)
class WeightSync:
    """Pushes weights through the channel of the experiment, through `disk` when that one fails."""

    learner: Learner
    sender: Sender
    channel: Channel
    disk: Channel
    """The same object as `channel` when that is the disk."""
    renderer: Renderer
    pixels: ScreenshotCache
    failures: int = 0
    """Of `channel`, in a row."""
    idle_before: float | None = None

    def push(self, policy_version: int) -> SyncReport:
        """Sync `policy_version` and compare the canary. A collective."""
        started = time.monotonic()
        canary, fell_back = self._push(policy_version)
        seconds = time.monotonic() - started
        drift = None if canary is None else self.drift(canary)
        return SyncReport(seconds=seconds, drift=drift, fell_back=fell_back, idle_s=self._idle())

    def close(self) -> None:
        """Give back what the channels hold. A collective."""
        self.channel.close()
        if self.disk is not self.channel:
            self.disk.close()

    def _push(self, policy_version: int) -> tuple[Canary | None, bool]:
        if self.failures < MAX_FAILURES:
            try:
                canary = self.channel.push(policy_version)
                self.failures = 0
                return canary, False
            except SyncFailed as error:
                self.failures += 1
                logger.warning("weight sync of version %d goes by disk: %s", policy_version, error)
        return self.disk.push(policy_version), True

    def _idle(self) -> float | None:
        """Rank 0 only: how long the engine idled since the last sync."""
        if self.sender.coordinator is None:
            return None
        now = self.sender.coordinator.engine_idle_s
        before, self.idle_before = self.idle_before, now
        # A new policy server starts at zero again.
        return None if before is None else max(0.0, now - before)

    def drift(self, canary: Canary) -> float:
        """Mean |trainer - engine| over the canary's completion tokens, nats. A collective."""
        with self.learner.policy.at_temperature(canary.temperature):
            return mean_gap(canary, self._logprobs, self.renderer, self.pixels)

    def _logprobs(self, sample: Sample) -> list[float]:
        return self.learner.token_logprobs([sample])[0]


def mean_gap(
    canary: Canary, score: Callable[[Sample], list[float]], renderer: Renderer, pixels: ScreenshotCache
) -> float:
    """Mean |trainer - engine| over the completion tokens, nats; `score`: the trainer's logprobs of them."""
    ours = score(canary_sample(canary, renderer, pixels))
    theirs = [value for value, bit in zip(canary.logprobs, canary.loss_mask, strict=True) if bit]
    return sum(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / max(len(theirs), 1)


def build_weight_sync(
    learner: Learner,
    config: ExperimentConfig,
    coordinator: CoordinatorClient | None,
    *,
    pixels: ScreenshotCache,
    renderer: Renderer,
    source: Path,
    directory: Path,
) -> WeightSync:
    """The sync of an experiment: `coordinator` on rank 0 only, `source` its model folder. A collective."""
    sender = Sender(
        model=learner.policy.model,
        world=learner.world,
        coordinator=coordinator,
        source=source,
        directory=directory,
        dtype=getattr(torch, config.model.dtype),
        num_engine_ranks=num_engine_ranks(config.engine),
    )
    disk = DiskChannel(sender)
    # An adapter is small, and an engine takes it as a folder.
    name = "disk" if config.lora.rank else channel_name(config.engine, learner.world.device)
    channel = disk if name == "disk" else CHANNELS[name](sender)
    return WeightSync(
        learner=learner, sender=sender, channel=channel, disk=disk, renderer=renderer, pixels=pixels
    )


def canary_sample(canary: Canary, renderer: Renderer, pixels: ScreenshotCache) -> Sample:
    """The canary as a sample; its images enter the pixel cache under their place."""
    names, grids = [], []
    for index, encoded in enumerate(canary.images):
        png = base64.b64decode(encoded)
        with open_picture(png) as image:
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
