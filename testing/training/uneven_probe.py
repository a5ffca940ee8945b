"""A step and an SFT step over samples of very unequal size, on N processes, for every case of a folder.

    python -m training.distributed.launch --ranks N -m testing.training.uneven_probe FOLDER NAME...
FOLDER holds padded.yaml, packed.yaml, NAME.pickle (samples) and frames/; rank 0 writes probe-WORLD_SIZE.pt.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from testing.training.parallel_probe import leave
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from training.batch.samples import Sample
from training.contracts.config import from_yaml, parse_config, to_yaml
from training.distributed.world import World, start_world
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine

LAYOUTS: dict[str, dict[str, Any]] = {
    "padded": {"microbatch_size": 3},
    "packed": {"packing": True, "microbatch_tokens": 128, "microbatch_patches": 1024},
}
CASES = ("one without pictures", "pictures in one", "no pictures", "one long among short")


def write_cases(folder: Path, model: Path) -> None:
    """Samples of every case and configs of both layouts, of a toy `model`."""
    for name, layout in LAYOUTS.items():
        config = parse_config({
            "model": {"path": str(model), "max_pixels": 12288},
            "sampling": {"max_completion_tokens": 6},
            "algorithm": {
                "group_size": 4, "groups_per_step": 2, "updates_per_batch": 2,
                "old_logprobs": "recomputed", "correction": "truncate",
            },
            "optimiser": {"learning_rate": 1e-7, "max_grad_norm": 1e9} | layout,
        })  # fmt: skip
        (folder / f"{name}.yaml").write_text(to_yaml(config))
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    desktops = ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames")
    seen = record_samples(desktops)
    blind = [_blind(sample, 12) for sample in seen]
    cases = (
        [*seen[:3], blind[3], *seen[4:]],
        [*blind[:5], seen[5], *blind[6:]],
        blind,
        [*blind[:4], _blind(seen[4], 900), seen[5], *blind[6:]],
    )
    for name, samples in zip(CASES, cases, strict=True):
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(samples))


def _blind(sample: Sample, length: int) -> Sample:
    """A sequence of this many tokens without any picture in the place of `sample`; a third is trained on."""
    chance = random.Random(sample.trajectory_id)
    first = length - length // 3
    mask = tuple(int(place >= first) for place in range(length))
    return replace(
        sample,
        token_ids=tuple(chance.randrange(20, 200) for _ in range(length)),
        loss_mask=mask,
        behaviour_logprobs=tuple(-5.0 * bit for bit in mask),
        policy_versions=tuple(bit - 1 for bit in mask),
        images=(),
        grids=(),
    )


def find(folder: Path, layout: str, samples: Sequence[Sample], world: World) -> dict[str, Any]:
    """Losses and norms of a step of two updates, whose old logprobs are scored first, and of an SFT step."""
    config = from_yaml((folder / f"{layout}.yaml").read_text())
    renderer = Renderer.from_folder(config.model.path, config.model, config.prompt)
    learner = toy_learner(config, world, renderer, folder / "frames")
    policy = learner.policy_step(samples, 0)
    imitated = learner.likelihood_step([replace(one, as_likelihood=True) for one in samples], 1.0)
    found = {
        "loss": policy.loss,
        "norm": policy.grad_norm,
        "updates": policy.num_updates,
        "sft loss": imitated.loss,
        "sft norm": imitated.grad_norm,
    }
    for key, (ratio, gap) in sorted(policy.per_sequence.items()):
        found |= {f"ratio of {key}": ratio, f"gap of {key}": gap}
    return found


def read_case(folder: Path, name: str) -> list[Sample]:
    return pickle.loads((folder / f"{name}.pickle").read_bytes())


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    world = start_world()
    found = {
        f"{name}, {layout}": find(folder, layout, read_case(folder, name), world)
        for name in names
        for layout in LAYOUTS
    }
    if world.is_main:
        torch.save(found, folder / f"probe-{world.size}.pt")
    leave()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
