"""Run by torchrun from test_parallel.py: one backward and some steps over recorded samples.

    python -m tests.training.parallel_probe FOLDER
FOLDER holds config.yaml, samples.pickle and frames/; rank 0 writes probe-WORLD_SIZE.pt there.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import torch

from tests.training.recorded import toy_trainer
from training.config import from_yaml
from training.parallel import full, full_state, start_world, stop_world
from training.rendering import Renderer


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    world = start_world()
    config = from_yaml((folder / "config.yaml").read_text())
    renderer = Renderer.from_folder(config.model.path, config.model, config.prompt)
    samples = pickle.loads((folder / "samples.pickle").read_bytes())
    trainer = toy_trainer(config, world, renderer, folder / "frames")
    gradient = trainer.policy_gradient(samples)
    gradients = {
        name: full(parameter.grad).clone()
        for name, parameter in trainer.policy.named_parameters()
        if parameter.grad is not None
    }
    trainer.optimiser.zero_grad()
    losses = [trainer.policy_step(samples, step).loss for step in range(3)]
    found = {
        "sums": gradient.sums,
        "per_sequence": gradient.per_sequence,
        "gradients": gradients,
        "losses": losses,
        "weights": full_state(trainer.policy.model),
    }
    if world.is_main:
        torch.save(found, folder / f"probe-{world.size}.pt")
    stop_world()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
