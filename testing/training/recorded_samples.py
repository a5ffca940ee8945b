"""Recorded samples for trainers without a coordinator, and trainers of the toy model."""

from __future__ import annotations

from pathlib import Path

from testing.training.toy_desktops import ToyDesktops, toy_tasks
from training.batch.advantages import group_advantages
from training.batch.samples import Sample, build_samples
from training.batch.screenshot_cache import ScreenshotCache
from training.contracts.config import ExperimentConfig
from training.distributed.world import World
from training.model.load_sharded import build_policy
from training.render.renderer import Renderer
from training.update.learner import Learner
from training.update.microbatch_maker import TokenIds


def record_samples(desktops: ToyDesktops, *, num_groups: int = 2, size: int = 4) -> list[Sample]:
    """Samples of freshly sampled groups; advantages as if the rewards had been 0, 1, 2 ..."""
    samples = []
    for number, task in enumerate(toy_tasks("train")[:num_groups], start=1):
        group = desktops.group(number, task, size)
        rewards = {member.trajectory_id: float(i) for i, member in enumerate(group.trajectories)}
        found = group_advantages(rewards, scale=True)
        assert found is not None
        for member in group.trajectories:
            samples += build_samples(
                member,
                desktops.renderer,
                advantage=found.advantages[member.trajectory_id],
                image_token_id=desktops.renderer.image_pad_id,
            )
    return samples


def toy_learner(config: ExperimentConfig, world: World, renderer: Renderer, frames: Path) -> Learner:
    """A trainer of the model that `config` names."""
    policy = build_policy(config, config.model.path, world, banned_ids=renderer.banned_ids)
    ids = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
    return Learner(policy, world, config, ids, ScreenshotCache(renderer, directory=frames))
