"""Checkpoints: a resumed experiment walks the same curve; half a checkpoint is none."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed.checkpoint as dcp

from testing.small_disk import leave_free, make_room, small_disk
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.checkpoints.store import CheckpointStore, ExperimentState, folder_bytes
from training.checkpoints.tensors import fill_optimiser, optimiser_state, weights_of
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_state import COMPLETE
from training.distributed.world import World, start_world, stop_world
from training.sampler.engines.transformers_engine import load_model
from training.update.learner import Learner
from training.weights.model_folder_writer import export_model


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def walk(trainer: Learner, samples: list, steps: range) -> list[float]:
    return [trainer.policy_step(samples, step).loss for step in steps]


class Walks(NamedTuple):
    """Losses of five steps, of the same five with a break after two, and the checkpoint of the break."""

    straight: list[float]
    resumed: list[float]
    store: CheckpointStore
    folder: Path


def walk_twice(
    config: ExperimentConfig, desktops: ToyDesktops, world: World, directory: Path, state: ExperimentState
) -> Walks:
    samples = record_samples(desktops)
    source = Path(config.model.path)
    straight = walk(toy_learner(config, world, desktops.renderer, desktops.frames), samples, range(5))
    store = CheckpointStore(directory, keep_last=2)
    first = toy_learner(config, world, desktops.renderer, desktops.frames)
    losses = walk(first, samples, range(2))
    folder = store.save(first, state, source)
    second = toy_learner(config, world, desktops.renderer, desktops.frames)
    torch.manual_seed(99)
    store.load(folder, second)
    return Walks(straight, losses + walk(second, samples, range(2, 5)), store, folder)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_resumed_trainer_walks_the_same_curve(
    optimiser: str, toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model, optimiser={"name": optimiser, "warmup_steps": 3})
    state = ExperimentState(stage="grpo", grpo_step=2, policy_version=2, task_cursor=8, replay={"7": 1})
    walks = walk_twice(config, toy_desktops, world, tmp_path / "checkpoints", state)
    assert walks.store.read_state(walks.folder) == state
    assert walks.resumed == pytest.approx(walks.straight, abs=1e-6)
    assert walks.straight[0] > walks.straight[-1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_trainer_on_a_gpu_resumes_with_its_fused_optimiser(
    optimiser: str, toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model, optimiser={"name": optimiser})
    state = ExperimentState(stage="grpo", grpo_step=2)
    walks = walk_twice(config, toy_desktops, world, tmp_path / "checkpoints", state)
    assert walks.resumed == pytest.approx(walks.straight, abs=1e-3)


@pytest.mark.parametrize(("is_fused", "place"), [(True, "meta"), (False, "cpu")])
def test_a_fused_optimiser_finds_its_step_count_beside_the_weights(is_fused: bool, place: str) -> None:
    """On a GPU a fused AdamW refuses counts that lie on the host; here "meta" stands for the other device."""
    policy = torch.nn.Linear(3, 2, bias=False, device="meta")
    optimiser = torch.optim.AdamW(policy.parameters())
    optimiser.param_groups[0]["fused"] = is_fused
    trainer = SimpleNamespace(policy=policy, optimiser=SimpleNamespace(members=[optimiser]))
    fill_optimiser(trainer, {"optimiser|weight|step": torch.tensor(2.0)})  # type: ignore[arg-type]
    assert optimiser.state[policy.weight]["step"].device.type == place


def test_the_exported_folder_loads_like_any_checkpoint_and_scores_the_same(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model)
    samples = record_samples(toy_desktops, num_groups=1)
    trainer = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    trainer.policy_step(samples, 0)
    export_model(trainer.policy.model, toy_model, tmp_path / "export", world)
    load_model(tmp_path / "export")  # raises when a weight is missing or surplus
    again = toy_learner(toy_config(tmp_path / "export"), world, toy_desktops.renderer, toy_desktops.frames)
    for ours, theirs in zip(trainer.token_logprobs(samples), again.token_logprobs(samples), strict=True):
        assert theirs == pytest.approx(ours, abs=1e-6)


def test_an_interrupted_save_is_not_resumed_from(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    store = CheckpointStore(tmp_path, keep_last=3)
    good = store.save(trainer, ExperimentState(stage="grpo"), toy_model)
    broken = tmp_path / "00002-grpo-000001.tmp"
    broken.mkdir()
    (broken / "state.json").write_text("{}")
    assert store.newest() == good
    store.prune(best="")
    assert not broken.exists()


@pytest.mark.parametrize("is_old", [False, True])
def test_weights_lie_in_a_checkpoint_once_and_come_back_bit_for_bit(
    is_old: bool, toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model)
    trainer = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    walk(trainer, record_samples(toy_desktops), range(2))
    store = CheckpointStore(tmp_path, keep_last=1)
    folder = store.save(trainer, ExperimentState(stage="grpo", grpo_step=2), toy_model)
    weights, optimiser = weights_of(trainer), optimiser_state(trainer)
    num_bytes = sum(weight.nbytes for weight in weights.values())
    assert not (folder / "weights").exists()
    assert num_bytes < folder_bytes(folder / "model") < folder_bytes(folder) < 3.5 * num_bytes
    if is_old:
        dcp.save(weights | optimiser, checkpoint_id=folder / "shards")
        for name in ("model", "optimiser"):
            shutil.rmtree(folder / name)
    again = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    store.load(folder, again)
    for saved, loaded in ((weights, weights_of(again)), (optimiser, optimiser_state(again))):
        assert saved.keys() == loaded.keys()
        assert all(torch.equal(saved[name], loaded[name]) for name in saved)


class HeldStore(CheckpointStore):
    """Writes the last part of a checkpoint when it is told to."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, keep_last=3)
        self.may_go_on = threading.Event()
        self.failure: OSError | None = None

    def _write_model(self, *arguments: Any) -> None:
        assert self.may_go_on.wait(60)
        if self.failure is not None:
            raise self.failure
        super()._write_model(*arguments)


def test_training_goes_on_while_a_checkpoint_is_written(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    config = toy_config(toy_model)
    samples = record_samples(toy_desktops)
    store = HeldStore(tmp_path)
    trainer = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    walk(trainer, samples, range(2))
    state = ExperimentState(stage="grpo", grpo_step=2)
    folder = store.start(trainer, state, toy_model)
    state.grpo_step = 99
    later = walk(trainer, samples, range(2, 4))
    assert not store.is_idle
    assert store.newest() is None, "what is not complete is not resumed from"
    store.may_go_on.set()
    store.wait_for_save()
    assert store.newest() == folder
    assert store.read_state(folder).grpo_step == 2, "the state of when it began"
    again = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    store.load(folder, again)
    assert walk(again, samples, range(2, 4)) == pytest.approx(later, abs=1e-6)
    load_model(folder / "model")


def test_a_checkpoint_that_cannot_be_written_is_an_error_and_no_checkpoint(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    store = HeldStore(tmp_path)
    store.failure = OSError(5, "Input/output error")
    store.may_go_on.set()
    store.start(trainer, ExperimentState(stage="grpo"), toy_model)
    with pytest.raises(OSError, match="Input/output"):
        store.wait_for_save()
    assert store.complete() == []


def test_a_disk_that_refuses_again_although_it_has_room_is_an_error(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    """Room may have come back between the write and the look at the disk; once."""
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    store = HeldStore(tmp_path)
    store.failure = OSError(28, "No space left on device")
    store.may_go_on.set()
    state = ExperimentState(stage="grpo")
    assert not store.save(trainer, state, toy_model).exists()
    with pytest.raises(OSError, match="No space left"):
        store.save(trainer, state, toy_model)
    assert store.complete() == []


def test_a_checkpoint_without_room_is_given_up_and_the_next_one_written(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    state = ExperimentState(stage="grpo")
    with small_disk(tmp_path / "disk", 200) as disk:
        store = CheckpointStore(disk / "checkpoints", keep_last=2)
        store.verify_writable()
        leave_free(disk, 100_000)
        lost = store.start(trainer, state, toy_model)
        store.wait_for_save()
        assert store.is_idle
        assert not lost.exists()
        assert list(store.directory.iterdir()) == [], "what it had written is gone"
        make_room(disk)
        assert store.save(trainer, state, toy_model) == store.newest()


def test_only_the_newest_and_the_best_are_kept(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    store, state = CheckpointStore(tmp_path, keep_last=2), ExperimentState(stage="grpo")
    saved = []
    for step in range(5):
        state.grpo_step = step
        saved.append(store.save(trainer, state, toy_model, is_best=step == 1))
    gone = store.prune(state.best_checkpoint)
    assert gone == [saved[0], saved[2]]
    assert store.complete() == [saved[1], saved[3], saved[4]]
    assert json.loads((saved[4] / "state.json").read_text())["best_checkpoint"] == saved[1].name
    assert all((folder / COMPLETE).exists() for folder in store.complete())


def test_one_that_somebody_waits_for_is_kept_until_the_next_look(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    trainer = toy_learner(toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames)
    store, state = CheckpointStore(tmp_path, keep_last=1), ExperimentState(stage="grpo")
    saved = [store.save(trainer, state, toy_model) for _ in range(3)]
    assert store.prune("", in_use={str(saved[0])}) == [saved[1]]
    assert store.prune("") == [saved[0]]


def test_an_unwritable_folder_is_refused_by_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match=r"checkpoints\.directory: cannot write to .*file/checkpoints"):
        CheckpointStore(tmp_path / "file" / "checkpoints", keep_last=1).verify_writable()
