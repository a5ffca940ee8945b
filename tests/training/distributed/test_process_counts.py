"""FSDP2 over gloo: neither the number of processes nor the layout of the data changes what is learned."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from testing.training.parallel_probe import assert_same_gradient, find, launch
from testing.training.recorded_samples import record_samples
from testing.training.resume_probe import assert_resumes
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.contracts.config import to_yaml
from training.distributed.world import World, start_world, stop_world

LAYOUTS: dict[str, dict[str, dict]] = {
    "plain": {"optimiser": {"microbatch_size": 2}},
    # About two sequences, or the patches of three screenshots, per forward-backward.
    "packed": {"optimiser": {"packing": True, "microbatch_tokens": 160, "microbatch_patches": 144}},
    "packed-recomputed": {
        "optimiser": {"packing": True, "microbatch_tokens": 100_000},
        "parallel": {"activation_checkpointing": True},
    },
    "recomputed": {"parallel": {"activation_checkpointing": True}},
    "kept": {"parallel": {"reshard": "never"}},
    "whole": {"optimiser": {"microbatch_size": 2}, "parallel": {"reshard": "never", "reduce": "step"}},
    "part-recomputed": {"parallel": {"activation_checkpointing": True, "recomputed_share": 0.5}},
    "offloaded": {"parallel": {"cpu_offload": True}},
}


@pytest.fixture(scope="module")
def folder(toy_model: Path, toy_renderer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven samples, one of them without images and one to imitate, and a config per layout."""
    from training.sampler.engines.transformers_engine import TransformersEngine

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
    for name, sections in LAYOUTS.items():
        algorithm = {"aggregation": "sequence_mean"}
        config = toy_config(toy_model, **({"algorithm": algorithm} | sections))
        (folder / f"{name}.yaml").write_text(to_yaml(config))
    (folder / "samples.pickle").write_bytes(pickle.dumps(samples))
    return folder


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture(scope="module")
def one(folder: Path, world: World) -> dict:
    """One process, padded microbatches: what everything else is compared with."""
    return find(folder, "plain", world, num_steps=3)


@pytest.fixture(scope="module")
def two(folder: Path) -> dict:
    return launch(folder, 2, ["plain", "packed", "offloaded", "whole"])


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - {"plain"}))
def test_every_layout_finds_the_same_loss_and_gradient(
    name: str, folder: Path, world: World, one: dict
) -> None:
    assert_same_gradient(one, find(folder, name, world))


@pytest.mark.parametrize("name", ["plain", "packed", "offloaded", "whole"])
def test_one_and_two_processes_find_the_same_loss_and_gradient(name: str, one: dict, two: dict) -> None:
    assert_same_gradient(one, two[name])


def test_two_processes_start_with_exactly_the_weights_of_one(one: dict, two: dict) -> None:
    assert one["start"].keys() == two["plain"]["start"].keys()
    for name, weight in one["start"].items():
        assert torch.equal(weight, two["plain"]["start"][name]), name


@pytest.mark.parametrize("layout", ["plain", "whole"])
def test_one_and_two_processes_walk_the_same_way(layout: str, one: dict, two: dict) -> None:
    assert one["losses"] == pytest.approx(two[layout]["losses"], rel=1e-4, abs=1e-5)
    assert one["losses"][0] > one["losses"][2], "the steps lower the loss"
    for name, weight in one["weights"].items():
        torch.testing.assert_close(weight, two[layout]["weights"][name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("processes", [4, 8])
def test_many_processes_find_the_same_loss_and_gradient(processes: int, folder: Path, one: dict) -> None:
    """Of eight, one has no sample at all: it must take part in every exchange nevertheless."""
    many = launch(folder, processes, ["plain", "packed"])
    for name in ("plain", "packed"):
        assert_same_gradient(one, many[name])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("before", "after"), [(8, 2), (2, 8)])
def test_another_number_of_processes_resumes_with_the_same_losses(
    before: int, after: int, folder: Path, tmp_path: Path
) -> None:
    assert_resumes(folder, tmp_path / "saved", before, after, tolerance=1e-5, limit_s=300)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_compiled_blocks_find_the_same_gradient(
    toy_model: Path, folder: Path, world: World, one: dict
) -> None:
    sections = {"algorithm": {"aggregation": "sequence_mean"}, "parallel": {"compile_blocks": True}}
    (folder / "compiled.yaml").write_text(to_yaml(toy_config(toy_model, **sections)))
    assert_same_gradient(one, find(folder, "compiled", world))
