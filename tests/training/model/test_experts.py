"""Mixtures of experts take every path of the dense models: sampling, packing, sharding, export, sync."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForImageTextToText

from testing.training.parallel_probe import assert_same_gradient, find, launch
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import to_yaml
from training.distributed.world import World, start_world, stop_world
from training.model.cpu_vision_tower import batched_vision_attention
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine, load_model
from training.sampler.weights.engine_tensor_names import check_sglang_names
from training.weights.errors import WeightsRefused
from training.weights.model_folder_writer import export_model
from training.weights.unsharded_weights import plain_weights

LAYOUTS: dict[str, dict[str, dict]] = {
    "plain": {"optimiser": {"microbatch_size": 2}},
    "packed": {"optimiser": {"packing": True, "microbatch_tokens": 160, "microbatch_patches": 144}},
    "recomputed": {"parallel": {"activation_checkpointing": True}},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blocks of four experts, two of which see a token."""
    sizes = TinySizes(
        text_hidden=64, experts=4, expert_intermediate=48,
        vision_hidden=32, vision_intermediate=64, vocabulary=400,
    )  # fmt: skip
    return make_tiny(tmp_path_factory.mktemp("models") / "experts", seed=0, sizes=sizes)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture(scope="module")
def folder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded samples and a config per layout."""
    folder = tmp_path_factory.mktemp("experts")
    config = toy_config(model)
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    samples = record_samples(ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames"))
    (folder / "samples.pickle").write_bytes(pickle.dumps(samples[:7]))
    for name, sections in LAYOUTS.items():
        (folder / f"{name}.yaml").write_text(to_yaml(toy_config(model, **sections)))
    return folder


@pytest.fixture(scope="module")
def one(folder: Path, world: World) -> dict:
    return find(folder, "plain", world)


def test_layouts_find_the_same_loss_and_gradient(folder: Path, world: World, one: dict) -> None:
    gaps = [gap for _, gap in one["per_sequence"].values()]
    assert max(gaps) < 1e-4, "the trainer scores as the engine did"
    assert any("experts" in name for name in one["gradients"])
    assert any("mlp.gate.weight" in name for name in one["gradients"]), "the router learns, too"
    for name in ("packed", "recomputed"):
        assert_same_gradient(one, find(folder, name, world))


@pytest.mark.slow
def test_two_processes_find_the_same_gradient(folder: Path, one: dict) -> None:
    two = launch(folder, 2, ["packed"])
    assert_same_gradient(one, two["packed"])


def test_the_vision_tower_takes_the_fast_paths(model: Path) -> None:
    loaded = load_model(model)
    for block in loaded.model.visual.blocks:
        assert block.attn.forward.__func__ is batched_vision_attention


def test_an_export_lies_as_on_the_hub_and_loads_the_same(
    model: Path, folder: Path, world: World, tmp_path: Path
) -> None:
    config = toy_config(model)
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    trainer = toy_learner(config, world, renderer, folder / "frames")
    samples = pickle.loads((folder / "samples.pickle").read_bytes())
    trainer.policy_step(samples, 0)
    export_model(trainer.policy.model, model, tmp_path / "out", world)
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as weights:
        name = "model.language_model.layers.0.mlp.experts."
        assert weights.get_slice(f"{name}gate_up_proj").get_shape() == [4, 64, 96], "[experts, in, out]"
        assert weights.get_slice(f"{name}down_proj").get_shape() == [4, 48, 64]
    loaded = AutoModelForImageTextToText.from_pretrained(tmp_path / "out")
    for (ours, mine), (theirs, yours) in zip(
        trainer.policy.model.named_parameters(), loaded.named_parameters(), strict=True
    ):
        assert ours == theirs
        torch.testing.assert_close(mine.full_tensor().detach(), yours.detach(), rtol=0, atol=0, msg=ours)


def test_every_weight_has_its_place_in_sglang(model: Path) -> None:
    """SGLang's names of a block with experts (`sglang.srt.models.qwen3_vl_moe`)."""
    block = "model.layers.1."
    names = [weight.name for weight in plain_weights(AutoModelForImageTextToText.from_pretrained(model))]
    ours = [name for name in names if "language_model.layers.1." in name]
    theirs = [
        "self_attn.qkv_proj.weight", "self_attn.o_proj.weight", "self_attn.q_norm.weight",
        "self_attn.k_norm.weight", "mlp.gate.weight", "mlp.experts.w13_weight", "mlp.experts.w2_weight",
        "input_layernorm.weight", "post_attention_layernorm.weight",
    ]  # fmt: skip
    check_sglang_names(ours, [block + name for name in theirs])
    with pytest.raises(WeightsRefused, match=r"unknown.*w2_weight"):
        check_sglang_names(ours, [block + name for name in theirs if "w2_weight" not in name])
