"""Weights that are read block by block are those of the checkpoint, and what does not fit is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import dynamic_module_utils

from testing.training.gathered_state import full_state
from tests.training.conftest import toy_config
from training.distributed.world import World, start_world, stop_world
from training.model.load_by_block import FolderReader, empty_model
from training.model.load_sharded import build_policy
from training.model.policy import load_model
from training.render.renderer import Renderer


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_the_sharded_model_has_exactly_the_weights_and_buffers_of_the_folder(
    toy_model: Path, world: World
) -> None:
    expected = load_model(toy_model, world.device)
    found = build_policy(toy_config(toy_model), toy_model, world, banned_ids=[]).model
    state = full_state(found)
    assert state.keys() == weights_of(expected).keys()
    for name, weight in weights_of(expected).items():
        assert torch.equal(state[name], weight), name
        assert state[name].dtype == torch.float32
    buffers = dict(found.named_buffers())
    for name, buffer in expected.named_buffers():
        assert torch.equal(buffers[name], buffer), name


def test_no_weight_has_memory_before_its_block_is_read(toy_model: Path) -> None:
    model = empty_model(toy_model)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert not any(buffer.is_meta for buffer in model.buffers())
    assert model.training


def test_tied_weights_stay_one(toy_model: Path, tmp_path: Path, world: World) -> None:
    """Whichever the toy is, both kinds are read."""
    for is_tied in (True, False):
        folder = tmp_path / str(is_tied)
        shutil.copytree(toy_model, folder)
        described = json.loads((folder / "config.json").read_text())
        described["tie_word_embeddings"] = described["text_config"]["tie_word_embeddings"] = is_tied
        (folder / "config.json").write_text(json.dumps(described))
        tensors = load_file(folder / "model.safetensors")
        embedding = "model.language_model.embed_tokens.weight"
        if is_tied:
            tensors.pop("lm_head.weight", None)
        else:
            tensors["lm_head.weight"] = tensors[embedding] * 2
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        state = full_state(build_policy(toy_config(folder), folder, world, banned_ids=[]).model)
        assert ("lm_head.weight" in state) != is_tied
        if not is_tied:
            assert torch.equal(state["lm_head.weight"], 2 * state[embedding])


def test_a_missing_weight_and_a_wrong_shape_are_named(toy_model: Path) -> None:
    read = FolderReader(toy_model)
    with pytest.raises(ValueError, match=r"model\.path: .* has no weight lm_foot"):
        read("lm_foot.weight", (1,))
    with pytest.raises(ValueError, match=r"norm\.weight is \(64,\), config\.json wants \(65,\)"):
        read("model.language_model.norm.weight", (65,))


def renderer_of(folder: Path) -> Renderer:
    config = toy_config(folder)
    return Renderer.from_folder(folder, config.model, config.prompt)


@pytest.mark.parametrize(
    ("file", "kind", "decides", "load"),
    [
        ("config.json", "AutoConfig", "configuration_auto", empty_model),
        ("tokenizer_config.json", "AutoTokenizer", "tokenization_auto", renderer_of),
    ],
)
def test_code_that_lies_in_a_models_folder_is_not_run(
    toy_model: Path,
    tmp_path: Path,
    monkeypatch,
    file: str,
    kind: str,
    decides: str,
    load: Callable[[Path], Any],
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(toy_model, folder)
    described = json.loads((folder / file).read_text())
    names = ["evil.Evil", None] if kind == "AutoTokenizer" else "evil.Evil"
    (folder / file).write_text(json.dumps({**described, "auto_map": {kind: names}}))
    (folder / "evil.py").write_text('raise RuntimeError("it ran")')
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    load(folder)
    trusted = f"transformers.models.auto.{decides}.resolve_trust_remote_code"
    monkeypatch.setattr(trusted, lambda *args, **kwargs: True)
    with pytest.raises(RuntimeError, match="it ran"):
        load(folder)
