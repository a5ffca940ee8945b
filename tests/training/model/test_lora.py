"""Adapters: only they learn, and what leaves the trainer is an ordinary checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.checkpoints.store import CheckpointStore, ExperimentState
from training.distributed.world import World, start_world, stop_world
from training.model.lora import merged
from training.model.policy import load_model
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
