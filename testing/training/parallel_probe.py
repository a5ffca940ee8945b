"""One backward and some steps over recorded samples, for every config of a folder.

    python -m training.distributed.launch --ranks N -m testing.training.parallel_probe FOLDER NAME...
FOLDER holds NAME.yaml, samples.pickle and frames/; rank 0 writes probe-WORLD_SIZE.pt there.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import toy_learner
from training.contracts.config import from_yaml
from training.distributed.fsdp import full
from training.distributed.world import World, barrier, start_world
from training.render.renderer import Renderer

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS = {"plain": 3, "whole": 3}
"""Configs with which steps are made, too."""


def find(folder: Path, name: str, world: World, *, num_steps: int = 0) -> dict[str, Any]:
    """Weights, sums and gradients of one backward; with `num_steps` also the losses and weights of steps."""
    config = from_yaml((folder / f"{name}.yaml").read_text())
    renderer = Renderer.from_folder(config.model.path, config.model, config.prompt)
    samples = pickle.loads((folder / "samples.pickle").read_bytes())
    learner = toy_learner(config, world, renderer, folder / "frames")
    start = {name: weight.clone() for name, weight in full_state(learner.policy.model).items()}
    gradient = learner.policy_gradient(samples)
    gradients = {
        name: full(parameter.grad).cpu().clone()
        for name, parameter in learner.policy.named_parameters()
        if parameter.grad is not None
    }
    learner.optimiser.zero_grad()
    found: dict[str, Any] = {
        "start": start,
        "sums": gradient.sums,
        "per_sequence": gradient.per_sequence,
        "gradients": gradients,
    }
    if num_steps:
        found["losses"] = [learner.policy_step(samples, step).loss for step in range(num_steps)]
        found["weights"] = full_state(learner.policy.model)
    return found


def launch(
    folder: Path, processes: int, names: list[str], *, limit_s: float = 900, probe: str = "parallel_probe"
) -> dict[str, Any]:
    """What this many processes find, one thread each; over NCCL where there are GPUs, else over gloo.

    `probe`: which module of `testing.training` they run.
    """
    command = [sys.executable, "-m", "training.distributed.launch", "--ranks"]
    command += [str(processes), "-m", f"testing.training.{probe}", str(folder), *names]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=limit_s,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(folder / f"probe-{processes}.pt", weights_only=False)


def assert_same_gradient(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Sums, logprobs of every sequence and gradients of two backwards are equal within fp32 rounding."""
    assert found["sums"] == pytest.approx(expected["sums"], rel=1e-4, abs=1e-5)
    assert found["per_sequence"].keys() == expected["per_sequence"].keys()
    for key, pair in expected["per_sequence"].items():
        assert found["per_sequence"][key] == pytest.approx(pair, rel=1e-4, abs=1e-5)
    assert found["gradients"].keys() == expected["gradients"].keys()
    assert any(gradient.abs().max() > 1e-4 for gradient in expected["gradients"].values())
    for name, gradient in expected["gradients"].items():
        torch.testing.assert_close(found["gradients"][name], gradient, rtol=1e-3, atol=1e-6, msg=name)


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    world = start_world()
    found = {name: find(folder, name, world, num_steps=STEPS.get(name, 0)) for name in names}
    if world.is_main:
        torch.save(found, folder / f"probe-{world.size}.pt")
    leave()


def leave() -> None:
    """End this rank when all have come so far.

    Without the interpreter's end: on a busy machine a rank that leaves first sometimes aborts in it, when
    torch takes down a thread of gloo's that still runs ("terminate called without an active exception").
    """
    barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
