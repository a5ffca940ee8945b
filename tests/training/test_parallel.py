"""FSDP2 over gloo: the number of processes changes nothing but the speed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.conftest import toy_config
from tests.training.recorded import record_samples
from tests.training.toy_desktops import ToyDesktops
from training.config import to_yaml

REPOSITORY = Path(__file__).resolve().parents[2]


def probe(folder: Path, processes: int) -> dict:
    """What `parallel_probe` finds with this many processes."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
    ]
    done = subprocess.run(
        [*command, "-m", "tests.training.parallel_probe", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(folder / f"probe-{processes}.pt", weights_only=False)


@pytest.fixture(scope="module")
def probes(toy_model: Path, toy_renderer, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    """The findings of one and of two processes over seven samples, one of them without images."""
    from training.engine_transformers import TransformersEngine

    folder = tmp_path_factory.mktemp("probe")
    engine = TransformersEngine(toy_model, toy_renderer, seed=1)
    desktops = ToyDesktops(engine=engine, renderer=toy_renderer, frames=folder / "frames")
    samples = record_samples(desktops)[:7]
    samples[3] = replace(samples[3], as_likelihood=True, likelihood_weight=0.5)
    pad = toy_renderer.image_pad_id
    words = [index for index, token in enumerate(samples[5].token_ids) if token != pad]
    samples[5] = replace(
        samples[5],
        images=(),
        grids=(),
        **{
            name: tuple(getattr(samples[5], name)[index] for index in words)
            for name in ("token_ids", "loss_mask", "behaviour_logprobs", "policy_versions")
        },
    )
    config = toy_config(
        toy_model, optimiser={"microbatch_size": 2}, algorithm={"aggregation": "sequence_mean"}
    )
    (folder / "config.yaml").write_text(to_yaml(config))
    (folder / "samples.pickle").write_bytes(pickle.dumps(samples))
    return probe(folder, 1), probe(folder, 2)


def test_one_and_two_processes_find_the_same_loss_and_sums(probes: tuple[dict, dict]) -> None:
    one, two = probes
    assert one["sums"] == pytest.approx(two["sums"], rel=1e-5, abs=1e-6)
    assert one["per_sequence"].keys() == two["per_sequence"].keys()


def test_one_and_two_processes_find_the_same_gradient(probes: tuple[dict, dict]) -> None:
    one, two = probes
    assert one["gradients"].keys() == two["gradients"].keys()
    assert any(gradient.abs().max() > 1e-4 for gradient in one["gradients"].values())
    for name, gradient in one["gradients"].items():
        torch.testing.assert_close(gradient, two["gradients"][name], rtol=1e-4, atol=1e-6, msg=name)


def test_one_and_two_processes_walk_the_same_way(probes: tuple[dict, dict]) -> None:
    one, two = probes
    assert one["losses"] == pytest.approx(two["losses"], rel=1e-4, abs=1e-5)
    assert one["losses"][0] > one["losses"][2], "the steps lower the loss"
    for name, weight in one["weights"].items():
        torch.testing.assert_close(weight, two["weights"][name], rtol=1e-3, atol=1e-4, msg=name)
