"""Adapters: only they learn, and what leaves the trainer is an ordinary checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.batch.samples import Sample
from training.checkpoints.base_weights import BaseGone, BaseWeights
from training.checkpoints.shard_reader import ShardReader
from training.checkpoints.store import CheckpointStore, ExperimentState, folder_bytes
from training.checkpoints.tensors import holds_all_weights, optimiser_state, weights_of
from training.contracts.trainer_state import LearningStage
from training.distributed.world import World, start_world, stop_world
from training.model.lora import is_adapter, merged
from training.model.policy import load_model
from training.update.learner import Learner
from training.weights.model_folder_writer import export_model


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def test_only_adapters_learn_and_the_export_is_the_merged_policy(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    samples = record_samples(toy_desktops)
    config = toy_config(toy_model, lora={"rank": 4, "alpha": 8}, optimiser={"learning_rate": 1e-2})
    trainer = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    fresh = trainer.token_logprobs(samples[:2])
    before = {name: weight.clone() for name, weight in full_state(trainer.policy.model).items()}
    for step in range(2):
        assert not trainer.policy_step(samples, step).was_skipped
    after = full_state(trainer.policy.model)
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert changed
    assert all(".lora_" in name for name in changed)

    export_model(trainer.policy.model, toy_model, tmp_path / "plain", world)
    plain = toy_learner(toy_config(tmp_path / "plain"), world, toy_desktops.renderer, toy_desktops.frames)
    assert full_state(plain.policy.model).keys() == full_state(load_model(toy_model, world.device)).keys()
    ours, theirs = trainer.token_logprobs(samples[:2]), plain.token_logprobs(samples[:2])
    for mine, other, start in zip(ours, theirs, fresh, strict=True):
        assert mine == pytest.approx(other, abs=1e-4)
        assert mine != pytest.approx(start, abs=1e-4), "the adapters have moved the policy"


def test_adapters_and_their_optimiser_survive_a_checkpoint(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    samples = record_samples(toy_desktops)
    config = toy_config(toy_model, lora={"rank": 2}, optimiser={"learning_rate": 1e-2})

    def make():
        return toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)

    first, store = make(), CheckpointStore(tmp_path / "checkpoints", keep_last=2)
    first.policy_step(samples, 0)
    folder = store.save(first, ExperimentState(stage="grpo", grpo_step=1), toy_model)
    second = make()
    store.load(folder, second)
    losses = [trainer.policy_step(samples, 1).loss for trainer in (first, second)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    weights = [full_state(trainer.policy.model) for trainer in (first, second)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], rtol=1e-5, atol=1e-6, msg=name)


@pytest.fixture
def base(toy_model: Path, tmp_path: Path) -> Path:
    """A base of a test's own, which it may spoil."""
    return Path(shutil.copytree(toy_model, tmp_path / "base"))


def adapted_learner(base: Path, desktops: ToyDesktops, world: World, samples: list[Sample]) -> Learner:
    config = toy_config(base, lora={"rank": 2}, optimiser={"learning_rate": 1e-2})
    learner = toy_learner(config, world, desktops.renderer, desktops.frames)
    learner.policy_step(samples, 0)
    return learner


def require_equal(ours: Learner, theirs: Learner) -> None:
    for part in (weights_of, optimiser_state):
        mine, others = part(ours), part(theirs)
        assert mine.keys() == others.keys()
        assert all(torch.equal(mine[name], others[name]) for name in mine)


def at_first_step(num_saved: int = 0) -> ExperimentState:
    return ExperimentState(stage=LearningStage.GRPO, grpo_step=1, num_saved=num_saved)


def test_a_checkpoint_of_adapters_leaves_the_base_where_it_is(
    base: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    samples = record_samples(toy_desktops)
    first = adapted_learner(base, toy_desktops, world, samples)
    copied = CheckpointStore(tmp_path / "whole", keep_last=2).save(first, at_first_step(), base)
    store = CheckpointStore(tmp_path / "checkpoints", keep_last=2, base=BaseWeights.of(base))
    folder = store.save(first, at_first_step(), base)

    assert all(is_adapter(name) for name in ShardReader(folder / "weights").shapes())
    assert folder_bytes(folder / "weights") < folder_bytes(copied / "weights") / 5
    weights = "model/model.safetensors"
    assert (folder / weights).read_bytes() == (copied / weights).read_bytes(), "merged as before"

    moved = base.rename(tmp_path / "moved")
    store = CheckpointStore(tmp_path / "checkpoints", keep_last=2, base=BaseWeights.of(moved))
    store.require_base(folder, moved, world)
    second = adapted_learner(moved, toy_desktops, world, samples[:3])  # went another way
    store.load(folder, second)
    require_equal(first, second)
    assert first.policy_step(samples, 1).loss == second.policy_step(samples, 1).loss


def test_a_checkpoint_that_copied_its_base_is_resumed_and_its_run_goes_on_copying(
    base: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    samples = record_samples(toy_desktops)
    first = adapted_learner(base, toy_desktops, world, samples)
    folder = CheckpointStore(tmp_path / "old", keep_last=2).save(first, at_first_step(), base)
    store = CheckpointStore(tmp_path / "old", keep_last=2, base=BaseWeights.of(base))
    store.require_base(folder, base, world)
    second = adapted_learner(base, toy_desktops, world, samples[:3])
    store.load(folder, second)
    require_equal(first, second)
    assert holds_all_weights(store.save(second, at_first_step(num_saved=1), base))


def replace(weights: Path) -> None:
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)


def add(weights: Path) -> None:
    shutil.copyfile(weights, weights.with_name("more.safetensors"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (Path.unlink, r"base has no \*.safetensors"),
        (replace, r"base/model.safetensors is another file than then"),
        (add, r"base/more.safetensors was not there then"),
    ],
    ids=["gone", "replaced", "added"],
)
def test_a_resume_on_another_base_is_refused(
    spoil: Callable[[Path], None],
    words: str,
    base: Path,
    toy_desktops: ToyDesktops,
    world: World,
    tmp_path: Path,
) -> None:
    learner = adapted_learner(base, toy_desktops, world, record_samples(toy_desktops))
    directory = tmp_path / "checkpoints"
    store = CheckpointStore(directory, keep_last=2, base=BaseWeights.of(base))
    folder = store.save(learner, at_first_step(), base)
    spoil(base / "model.safetensors")
    with pytest.raises(BaseGone, match="safetensors changed while adapters were trained on it"):
        store.save(learner, at_first_step(num_saved=1), base)
    later = CheckpointStore(directory, keep_last=2, base=BaseWeights.of(base))
    with pytest.raises(BaseGone, match=f"model.path: .*{words}.*new experiment from .*/model") as refused:
        later.require_base(folder, base, world)
    assert folder.name in str(refused.value)


def test_merging_adds_the_scaled_product() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, down, up = (torch.randn(*shape, generator=generator) for shape in ((5, 3), (2, 3), (5, 2)))
    state = {
        "a.base_layer.weight": weight,
        "a.lora_A.default.weight": down,
        "a.lora_B.default.weight": up,
        "b.weight": torch.ones(2),
    }
    plain = merged(state, {"a": 4.0})
    assert plain.keys() == {"a.weight", "b.weight"}
    torch.testing.assert_close(plain["a.weight"], weight + 4.0 * torch.einsum("or,ri->oi", up, down))


def test_targets_that_name_no_layer_are_refused(
    toy_model: Path, toy_desktops: ToyDesktops, world: World
) -> None:
    config = toy_config(toy_model, lora={"rank": 2, "targets": ["nothing"]})
    with pytest.raises(ValueError, match=r"lora\.targets: no layer .* is named nothing"):
        toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
