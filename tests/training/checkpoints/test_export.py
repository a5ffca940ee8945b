"""Export: what comes out is what was trained, in the dtype asked for, or a clear refusal."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.checkpoints.export import ExportError, export_checkpoint, main
from training.checkpoints.store import CheckpointStore, ExperimentState
from training.distributed.world import World, start_world, stop_world
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine
from training.update.learner import Learner
from training.weights.model_folder_writer import write_pixel_limits


@pytest.fixture
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture
def trainer(toy_model: Path, toy_desktops: ToyDesktops, world: World) -> Learner:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    trainer.policy_step(record_samples(toy_desktops), 0)
    return trainer


@pytest.fixture
def checkpoint(trainer: Learner, toy_model: Path, tmp_path: Path) -> Path:
    store = CheckpointStore(tmp_path / "checkpoints", keep_last=2)
    return store.save(trainer, ExperimentState(stage="grpo", grpo_step=1), toy_model)


def test_an_export_is_the_trained_policy(
    trainer: Learner, checkpoint: Path, tmp_path: Path, toy_renderer
) -> None:
    folder = export_checkpoint(checkpoint, tmp_path / "plain", dtype="float32")
    model = AutoModelForImageTextToText.from_pretrained(folder)
    for name, weight in full_state(trainer.policy.model).items():
        torch.testing.assert_close(model.get_parameter(name).detach(), weight, rtol=0, atol=0, msg=name)
    TransformersEngine(folder, toy_renderer)


@pytest.mark.parametrize("size", [(3840, 2160), (1312, 736), (64, 48)])
def test_an_exports_processor_makes_the_grid_that_was_trained_with(
    checkpoint: Path, trainer: Learner, tmp_path: Path, toy_model: Path, size: tuple[int, int]
) -> None:
    limits = trainer.config.model
    first = json.loads((toy_model / "preprocessor_config.json").read_text())
    assert first["size"]["longest_edge"] != limits.max_pixels, "those of the first weights are others"
    folder = export_checkpoint(checkpoint, tmp_path / "plain")
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
    made = processor(images=[Image.new("RGB", size)], return_tensors="np")["image_grid_thw"][0]
    trained = Renderer.from_folder(toy_model, limits, trainer.config.prompt)
    assert tuple(made.tolist()) == trained.image_grid(size)


def test_limits_are_written_wherever_a_processor_reads_them(tmp_path: Path) -> None:
    old = {"min_pixels": 1, "size": {"shortest_edge": 1, "longest_edge": 2}}
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": old, "processor": "x"}))
    write_pixel_limits(tmp_path, 1024, 4096)
    assert json.loads((tmp_path / "processor_config.json").read_text()) == {
        "image_processor": {"min_pixels": 1024, "size": {"shortest_edge": 1024, "longest_edge": 4096}},
        "processor": "x",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["processor_config.json"]


def test_an_export_can_be_read_by_others_whatever_the_umask(checkpoint: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        folder = export_checkpoint(checkpoint, tmp_path / "plain")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


def test_an_exports_card_is_its_own_and_not_that_of_the_first_weights(
    checkpoint: Path, tmp_path: Path
) -> None:
    (checkpoint / "model" / "README.md").write_text("Qwen3-VL, as published")
    assert not (export_checkpoint(checkpoint, tmp_path / "plain") / "README.md").exists()
    card = tmp_path / "card.md"
    card.write_text("# Trained")
    assert main([str(checkpoint), str(tmp_path / "other"), "--card", str(card)]) == 0
    assert (tmp_path / "other" / "README.md").read_text() == "# Trained"


def test_large_exports_are_sharded_with_an_index(checkpoint: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "sharded"
    assert main([str(checkpoint), str(out), "--shard-bytes", "200000"]) == 0
    total, path = capsys.readouterr().out.splitlines()
    assert path == str(out)
    written = sum(file.stat().st_size for file in out.iterdir())
    assert json.loads(total)["total_bytes"] == pytest.approx(written, rel=0.1)
    index = json.loads((out / "model.safetensors.index.json").read_text())
    files = sorted(path.name for path in out.glob("*.safetensors"))
    assert len(files) > 1
    assert sorted(set(index["weight_map"].values())) == files
    model = AutoModelForImageTextToText.from_pretrained(out)
    assert model.dtype == torch.bfloat16


def test_the_exported_model_answers_as_the_checkpoint_does(
    checkpoint: Path, tmp_path: Path, toy_desktops: ToyDesktops, world: World
) -> None:
    samples = record_samples(toy_desktops)

    def logprobs(folder: Path) -> list[list[float]]:
        policy = toy_learner(toy_config(folder), world, toy_desktops.renderer, toy_desktops.frames)
        return policy.token_logprobs(samples)

    ours = logprobs(checkpoint / "model")
    same = logprobs(export_checkpoint(checkpoint, tmp_path / "float32", dtype="float32"))
    rounded = logprobs(export_checkpoint(checkpoint, tmp_path / "bfloat16", dtype="bfloat16"))
    assert same == ours
    for exact, near in zip(ours, rounded, strict=True):
        assert near == pytest.approx(exact, abs=0.05)


def test_a_disk_without_room_is_named_before_a_byte_is_written(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(ExportError, match=r"needs 0\.\d+ GB and the disk has 0\.00 GB free"):
        export_checkpoint(checkpoint, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_an_incomplete_checkpoint_is_refused(checkpoint: Path, tmp_path: Path, capsys) -> None:
    (checkpoint / "COMPLETE").unlink()
    assert main([str(checkpoint), str(tmp_path / "out")]) == 2
    assert "not a complete checkpoint" in capsys.readouterr().err


def test_a_folder_that_exists_is_never_overwritten(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="exists already"):
        export_checkpoint(checkpoint, tmp_path)


def test_weights_that_do_not_fit_the_architecture_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    path = checkpoint / "model" / "model.safetensors"
    weights = load_file(path)
    first = sorted(weights)[0]
    save_file({name: w for name, w in weights.items() if name != first} | {"surprise": weights[first]}, path)
    with pytest.raises(ExportError, match="surprise"):
        export_checkpoint(checkpoint, tmp_path / "out")
    assert not (tmp_path / "out").exists()
