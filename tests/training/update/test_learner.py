"""The updates of a step: what it changes, what it skips, what it reports."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from training.batch.samples import Sample
from training.distributed.world import World, start_world, stop_world
from training.model.load_sharded import build_policy
from training.update.learner import Learner


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture
def samples(toy_desktops: ToyDesktops) -> list[Sample]:
    return record_samples(toy_desktops)


@pytest.fixture
def make(toy_model: Path, toy_desktops: ToyDesktops, world: World):
    def make(**sections: dict) -> Learner:
        return toy_learner(
            toy_config(toy_model, **sections), world, toy_desktops.renderer, toy_desktops.frames
        )

    return make


def weights(trainer: Learner) -> dict[str, torch.Tensor]:
    """A copy of all weights by name."""
    return {name: weight.clone() for name, weight in full_state(trainer.policy.model).items()}


def moved(trainer: Learner, before: dict[str, torch.Tensor]) -> set[str]:
    """Names of the weights that changed."""
    after = full_state(trainer.policy.model)
    return {name for name, weight in after.items() if not torch.equal(weight, before[name])}


def test_fresh_samples_have_ratio_one_and_the_recorded_logprobs(make, samples: list[Sample]) -> None:
    result = make().policy_step(samples, 0)
    assert result.metrics["policy/importance_ratio_mean"] == pytest.approx(1, abs=1e-4)
    assert result.metrics["policy/logprob_gap"] < 1e-4
    assert result.metrics["policy/clip_fraction"] == 0
    assert result.metrics["loss/entropy"] > 1
    assert set(result.per_sequence) == {sample.trajectory_id for sample in samples}


@pytest.mark.parametrize("algorithm", ["grpo", "gspo"])
def test_a_step_makes_good_trajectories_likelier_than_bad_ones(
    algorithm: str, make, samples: list[Sample]
) -> None:
    trainer = make(algorithm={"name": algorithm})
    before = [sum(row) for row in trainer.token_logprobs(samples)]
    trainer.policy_step(samples, 0)
    after = [sum(row) for row in trainer.token_logprobs(samples)]
    gain = [(b - a) * sample.advantage for a, b, sample in zip(before, after, samples, strict=True)]
    assert sum(gain) > 0


@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_microbatch_size_does_not_change_the_gradient(size: int, make, samples: list[Sample]) -> None:
    sections = {"algorithm": {"aggregation": "sequence_mean"}}
    whole = make(**sections, optimiser={"microbatch_size": 100}).policy_step(samples, 0)
    split = make(**sections, optimiser={"microbatch_size": size}).policy_step(samples, 0)
    assert split.loss == pytest.approx(whole.loss, abs=1e-6)
    assert split.grad_norm == pytest.approx(whole.grad_norm, rel=1e-4)


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted(make, samples: list[Sample]) -> None:
    trainer = make()
    before = weights(trainer)
    result = trainer.policy_step([replace(samples[0], advantage=math.nan), *samples[1:]], 0)
    assert result.was_skipped
    assert moved(trainer, before) == set()
    assert trainer.policy_step(samples, 1).metrics["optimiser/skipped_steps"] == 1
    assert moved(trainer, before)


def test_a_step_makes_one_update_per_part_and_keeps_groups_whole(make, samples: list[Sample]) -> None:
    once = make().policy_step(samples, 0)
    twice = make(algorithm={"updates_per_batch": 2}).policy_step(samples, 0)
    assert (once.num_updates, twice.num_updates) == (1, 2)
    assert set(twice.per_sequence) == {sample.trajectory_id for sample in samples}
    first = {sample.trajectory_id for sample in samples if sample.group_id == 1}
    ratios = {key: ratio for key, (ratio, _) in twice.per_sequence.items()}
    assert all(abs(ratio - 1) < 1e-4 for key, ratio in ratios.items() if key in first)
    assert any(abs(ratio - 1) > 1e-3 for key, ratio in ratios.items() if key not in first), "it has moved"
    assert twice.metrics["policy/logprob_gap"] < 1e-4, "of the first update, before anything moved"


def test_dr_grpo_weighs_a_token_alike_whatever_other_groups_of_the_step_leave(
    make, samples: list[Sample]
) -> None:
    settings = {"name": "dr_grpo", "scale_advantages": False, "aggregation": "constant"}
    learner = make(algorithm=settings | {"groups_per_step": 2, "group_size": 4})
    samples = [replace(sample, advantage=1.0) for sample in samples]
    first, second = ([s for s in samples if s.group_id == group] for group in (1, 2))
    alone = [learner.policy_gradient(part).sums["policy"] for part in (first, second)]
    assert all(abs(loss) > 1e-3 for loss in alone)
    assert learner.policy_gradient(samples).sums["policy"] == pytest.approx(sum(alone), abs=1e-9)


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "trajectory_mean", "constant"])
def test_parts_of_unequal_size_weigh_a_token_by_the_whole_batch(
    aggregation: str, make, samples: list[Sample]
) -> None:
    algorithm = {"aggregation": aggregation, "groups_per_step": 3, "updates_per_batch": 2}
    seen = []
    for settings in (algorithm, algorithm | {"updates_per_batch": 1}):
        learner = make(algorithm=settings, optimiser={"learning_rate": 1e-12})
        third = [
            replace(sample, group_id=3, trajectory_id=100 + sample.trajectory_id) for sample in samples[:4]
        ]
        seen.append(learner.policy_step([*samples, *third], 0))
    assert [result.num_updates for result in seen] == [2, 1]
    assert seen[0].loss == pytest.approx(seen[1].loss, abs=1e-6)


def test_one_update_needs_no_further_forward_for_its_old_logprobs(make, samples: list[Sample]) -> None:
    stale = [
        replace(sample, behaviour_logprobs=tuple(value - 0.1 for value in sample.behaviour_logprobs))
        for sample in samples
    ]
    for updates, forwards in ((1, 2), (2, 4)):
        learner = make(
            algorithm={"updates_per_batch": updates, "old_logprobs": "recomputed", "correction": "truncate"}
        )
        seen = []
        learner.policy.register_forward_hook(lambda *_, seen=seen: seen.append(1))
        result = learner.policy_step(stale, 0)
        assert len(seen) == forwards, "eight samples in microbatches of four"
        assert result.metrics["policy/logprob_gap"] == pytest.approx(0.1, abs=1e-3)
        assert result.metrics["policy/importance_ratio_mean"] == pytest.approx(math.exp(0.1), rel=1e-3)


def test_a_step_moves_when_one_of_its_updates_does(make, samples: list[Sample]) -> None:
    trainer = make(algorithm={"updates_per_batch": 2})
    broken = [replace(samples[0], advantage=math.nan), *samples[1:]]
    result = trainer.policy_step(broken, 0)
    assert (result.num_updates, result.num_skipped) == (2, 1)
    assert result.was_skipped
    assert result.has_moved
    assert math.isnan(result.grad_norm), "an alarm must see it"


def test_sft_scores_at_temperature_one_whatever_is_sampled_at(make, samples: list[Sample]) -> None:
    shown = [replace(sample, as_likelihood=True) for sample in samples]
    cold = make(sampling={"temperature": 0.2})
    assert cold.likelihood_step(shown, 1.0).loss == pytest.approx(make().likelihood_step(shown, 1.0).loss)
    assert cold.policy.temperature == 0.2
    likelihood = [
        make(sampling={"temperature": t}).policy_step(shown, 0).metrics["loss/likelihood"] for t in (0.2, 1.0)
    ]
    assert likelihood[0] == pytest.approx(likelihood[1]), "likelihood terms of a GRPO step, too"


def test_a_frozen_vision_tower_stays_as_it_was(make, samples: list[Sample]) -> None:
    trainer = make(model={"freeze_vision": True})
    before = weights(trainer)
    trainer.policy_step(samples, 0)
    changed = moved(trainer, before)
    assert changed
    assert not any("visual" in name for name in changed)


def test_every_weight_learns_from_images_and_text(make, samples: list[Sample]) -> None:
    trainer = make()
    before = weights(trainer)
    trainer.policy_step(samples, 0)
    # The bias of a key shifts all scores of a query alike: softmax gives it no gradient.
    assert {name for name in before if name not in moved(trainer, before)} <= {
        name for name in before if "qkv.bias" in name
    }


@pytest.mark.parametrize("offload", [False, True])
def test_kl_to_a_reference_is_zero_at_the_start_and_grows(
    offload: bool, make, toy_model: Path, toy_renderer, world: World, samples: list[Sample]
) -> None:
    settings = {"kl_coefficient": 0.1, "reference_path": str(toy_model), "reference_offload": offload}
    trainer = make(algorithm=settings)
    trainer.reference = build_policy(
        trainer.config, toy_model, world, banned_ids=toy_renderer.banned_ids, is_reference=True
    )
    found = [trainer.policy_step(samples, step).metrics["loss/kl"] for step in range(3)]
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert found[2] > found[0] + 1e-4


def test_likelihood_samples_are_imitated_whatever_their_advantage(make, samples: list[Sample]) -> None:
    trainer = make()
    human = replace(
        samples[0],
        as_likelihood=True,
        advantage=-1.0,
        behaviour_logprobs=tuple(math.nan if bit else 0.0 for bit in samples[0].loss_mask),
    )
    others = [replace(sample, advantage=0.0) for sample in samples[1:]]
    before = sum(trainer.token_logprobs([human])[0])
    result = trainer.policy_step([human, *others], 0)
    assert not result.was_skipped
    assert result.metrics["loss/likelihood"] > 0
    assert sum(trainer.token_logprobs([human])[0]) > before


def test_bfloat16_is_only_for_computing(make, samples: list[Sample]) -> None:
    trainer = make(model={"dtype": "bfloat16"})
    result = trainer.policy_step(samples, 0)
    assert result.metrics["policy/logprob_gap"] < 0.1
    assert not result.was_skipped
    assert {weight.dtype for weight in weights(trainer).values()} == {torch.float32}


def test_warm_up_raises_the_rate_linearly(make, samples: list[Sample]) -> None:
    trainer = make(optimiser={"warmup_steps": 4, "learning_rate": 1e-3})
    rates = [trainer.policy_step(samples[:4], step).learning_rate for step in range(5)]
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3])


def test_sampling_temperature_divides_the_logits(make, samples: list[Sample]) -> None:
    usual = make().policy_step(samples, 0).metrics["loss/entropy"]
    assert make(sampling={"temperature": 0.2}).policy_step(samples, 0).metrics["loss/entropy"] < usual - 0.5


def test_after_a_step_the_collector_passes_over_what_start_up_made(make, samples: list[Sample]) -> None:
    learner = make()
    before = gc.get_freeze_count()
    learner.policy_step(samples, 0)
    assert gc.get_freeze_count() == before, "on a CPU a pause costs nothing"
    learner._has_frozen = False  # as on a GPU
    try:
        learner.policy_step(samples, 1)
        frozen = gc.get_freeze_count()
        assert frozen > before + 100_000, "the objects of torch and transformers"
        learner.policy_step(samples, 2)
        assert gc.get_freeze_count() <= frozen, "what steps make is collected as before"
    finally:
        gc.unfreeze()
