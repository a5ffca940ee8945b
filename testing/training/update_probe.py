"""One step's updates by the trainer over recorded samples, on N processes, for every config of a folder.

    python -m training.distributed.launch --ranks N -m testing.training.update_probe FOLDER NAME...
FOLDER holds NAME.yaml, NAME.pickle (samples) and frames/; rank 0 writes probe-WORLD_SIZE.pt there.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from testing.training.gathered_state import full_state
from testing.training.parallel_probe import leave
from testing.training.plain_updates import PlainUpdates
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from training.batch.samples import Sample, share_counts, without_stale_tokens
from training.contracts.config import ExperimentConfig, from_yaml, parse_config, to_yaml
from training.distributed.world import World, start_world
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine
from training.update.optimisers import Optimisers

RATE = 0.3
"""Of plain gradient descent: large enough that the second update sees another policy."""
DECOUPLED = {
    "updates_per_batch": 2,
    "old_logprobs": "recomputed",
    "correction": "truncate",
    "correction_high": 1.05,
    "aggregation": "trajectory_mean",
    "clip_low": 0.002,
    "clip_high": 0.002,
}
PATHS: dict[str, dict[str, Any]] = {
    "decoupled, two updates": DECOUPLED,
    "decoupled, windowed and partly stale": DECOUPLED,
    "two updates against the engine": {"updates_per_batch": 2, "aggregation": "trajectory_mean"},
    "windowed RLOO": {
        "name": "rloo",
        "baseline": "leave_one_out",
        "scale_advantages": False,
        "aggregation": "trajectory_mean",
    },
    "windowed GSPO, decoupled": DECOUPLED | {"name": "gspo"},
}
"""What is compared end to end."""


def write_probe(folder: Path, model: Path) -> None:
    """Samples and configs of every path, of a toy `model`."""
    for name, algorithm in PATHS.items():
        config = parse_config({
            "model": {"path": str(model), "max_pixels": 12288},
            # A whole trajectory's ratio would be far beyond all bounds at another temperature.
            "sampling": {"max_completion_tokens": 6, "temperature": 1.0 if "RLOO" in name else 0.8},
            "algorithm": {"group_size": 4, "groups_per_step": 2} | algorithm,
            "optimiser": {"learning_rate": RATE, "microbatch_size": 3, "max_grad_norm": 1e9},
        })  # fmt: skip
        renderer = Renderer.from_folder(model, config.model, config.prompt)
        engine = TransformersEngine(model, renderer, seed=1)
        desktops = ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames")
        samples = _samples_of(name, record_samples(desktops))
        (folder / f"{name}.yaml").write_text(to_yaml(config))
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(samples))


def _samples_of(name: str, recorded: Sequence[Sample]) -> list[Sample]:
    """What a path trains on."""
    samples = _as_another_engine(recorded)
    if "windowed" in name:
        samples = _windowed(samples)
    if "RLOO" in name:
        # The gradient of a whole trajectory's probability is a sum over its tokens, of which fp32 would lose
        # more digits than are compared.
        samples = [replace(sample, advantage=0.1 * sample.advantage) for sample in samples]
    return share_counts(_partly_stale(samples) if "stale" in name else samples)


def _as_another_engine(samples: Sequence[Sample]) -> list[Sample]:
    """As one with numbers of its own would have recorded them: one of a person, one also imitated."""
    noise = torch.Generator().manual_seed(3)
    changed = []
    for sample in samples:
        shift = 0.1 * torch.randn(len(sample.token_ids), generator=noise, dtype=torch.float64)
        shifted = torch.tensor(sample.behaviour_logprobs, dtype=torch.float64) + shift
        changed.append(replace(sample, behaviour_logprobs=tuple(shifted.float().tolist())))
    changed[3] = replace(changed[3], as_likelihood=True, likelihood_weight=0.5)
    changed[7] = replace(changed[7], imitation_weight=0.3)
    return changed


def _windowed(samples: Sequence[Sample]) -> list[Sample]:
    """Two trajectories become two sequences each."""
    changed = list(samples)
    for second in (1, 5):
        first = changed[second - 1]
        changed[second] = replace(
            changed[second], trajectory_id=first.trajectory_id, advantage=first.advantage
        )
    return changed


def _partly_stale(samples: Sequence[Sample]) -> list[Sample]:
    """Of a sequence of a windowed trajectory, of a whole one and of all of a third the first part is old."""
    changed = list(samples)
    for index, share in ((1, 0.5), (2, 0.3), (6, 1.0)):
        places = [place for place, bit in enumerate(samples[index].loss_mask) if bit]
        old = set(places[: math.ceil(share * len(places))])
        versions = tuple(0 if place in old else 1 for place in range(len(samples[index].token_ids)))
        changed[index] = without_stale_tokens(replace(samples[index], policy_versions=versions), 1)
    return changed


def by_trainer(folder: Path, name: str, world: World) -> dict[str, Any]:
    """Loss and weights after one step."""
    config, renderer, samples = _read(folder, name)
    learner = toy_learner(config, world, renderer, folder / "frames")
    descent = torch.optim.SGD(learner.policy.parameters(), lr=config.optimiser.learning_rate)
    learner.optimiser = Optimisers([descent])
    result = learner.policy_step(samples, 0)
    return {"loss": result.loss, "metrics": result.metrics, "weights": full_state(learner.policy.model)}


def by_formula(folder: Path, name: str) -> dict[str, Any]:
    """The same by transformers and the formulas alone, in fp64; `start`: the weights before."""
    config, renderer, samples = _read(folder, name)
    plain = PlainUpdates(config, renderer, folder / "frames")
    start = {key: weight.clone() for key, weight in plain.model.state_dict().items()}
    return {"loss": plain.step(samples), "weights": plain.model.state_dict(), "start": start}


def differences(found: dict[str, Any], expected: dict[str, Any]) -> tuple[float, float]:
    """(|loss difference|, max |difference| of the gradients that the step went along, summed)"""
    worst = largest = 0.0
    for name, weight in found["weights"].items():  # tied weights are there once
        moved = expected["weights"][name] - expected["start"][name]
        largest = max(largest, float(moved.abs().max()) / RATE)
        worst = max(worst, float((weight.double() - expected["start"][name] - moved).abs().max()) / RATE)
    assert largest > 0.05, "there is a gradient to compare"
    return abs(found["loss"] - expected["loss"]), worst


def _read(folder: Path, name: str) -> tuple[ExperimentConfig, Renderer, list[Sample]]:
    config = from_yaml((folder / f"{name}.yaml").read_text())
    renderer = Renderer.from_folder(config.model.path, config.model, config.prompt)
    return config, renderer, pickle.loads((folder / f"{name}.pickle").read_bytes())


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    world = start_world()
    found = {name: by_trainer(folder, name, world) for name in names}
    if world.is_main:
        torch.save(found, folder / f"probe-{world.size}.pt")
    leave()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
