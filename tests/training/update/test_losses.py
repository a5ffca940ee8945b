"""Losses: what the clip does, what NaN may not do, and how token losses become one number."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from training.update.losses import POLICY_LOSSES, LossInputs
from training.update.losses.aggregation import BatchCounts, aggregate
from training.update.losses.importance_correction import correction
from training.update.losses.kl import KL_ESTIMATORS, k3_kl
from training.update.losses.likelihood import likelihood_loss

MODES = ("token_mean", "sequence_mean", "trajectory_mean", "constant")


GRADIENTS = set(POLICY_LOSSES) - {"rejection_fine_tuning"}
"""Those with a policy-gradient term."""


def inputs(policy: list, behaviour: list, advantages: list, mask: list | None = None) -> LossInputs:
    rows = torch.tensor(policy, requires_grad=True)
    return LossInputs(
        policy_logprobs=rows,
        old_logprobs=torch.tensor(behaviour),
        advantages=torch.tensor(advantages),
        mask=torch.ones_like(rows) if mask is None else torch.tensor(mask),
        clip_low=0.2,
        clip_high=0.28,
    )


def counts(mask: torch.Tensor) -> BatchCounts:
    rows = float(len(mask))
    return BatchCounts(
        num_tokens=float(mask.sum()), num_sequences=rows, num_trajectories=rows, constant=10 * rows
    )


@pytest.mark.parametrize("name", sorted(set(GRADIENTS) - {"cispo"}))
def test_on_policy_the_loss_is_minus_the_advantage(name: str) -> None:
    found = POLICY_LOSSES[name](inputs([[-1.0, -2.0]], [[-1.0, -2.0]], [1.5]))
    assert found.loss.tolist() == [[-1.5, -1.5]]
    assert found.importance_ratio.tolist() == [[1.0, 1.0]]
    assert found.is_clipped.sum() == 0


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (1.5, 1.0, -1.28, True),  # good and already more likely: no further
        (0.5, 1.0, -0.5, False),  # good and less likely: pulled back
        (0.5, -1.0, 0.8, True),  # bad and already less likely: no further
        (1.5, -1.0, 1.5, False),  # bad and more likely: pushed away in full
    ],
)
def test_grpo_clips_only_what_has_moved_far_enough(
    ratio: float, advantage: float, loss: float, clipped: bool
) -> None:
    given = inputs([[math.log(ratio)]], [[0.0]], [advantage])
    found = POLICY_LOSSES["grpo"](given)
    assert found.loss.item() == pytest.approx(loss)
    found.loss.sum().backward()
    assert bool(found.is_clipped.item()) is clipped
    assert (given.policy_logprobs.grad.item() == 0) is clipped


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_on_policy_every_algorithm_follows_the_policy_gradient(name: str) -> None:
    given = inputs([[-1.0, -2.0, -0.5]], [[-1.0, -2.0, 9.0]], [1.5], mask=[[1.0, 1.0, 0.0]])
    found = POLICY_LOSSES[name](given)
    aggregate(found.loss, "sequence_mean", given.mask, counts(given.mask)).backward()
    # RLOO sees the sequence as one action: each token has its full gradient, not its share of a mean.
    scale = 1.0 if name == "rloo" else 0.5
    assert given.policy_logprobs.grad.tolist() == [[-1.5 * scale, -1.5 * scale, 0.0]]


def test_cispo_bounds_the_weight_and_keeps_the_gradient_that_ppo_takes_away() -> None:
    rows = ([[math.log(3.0)]], [[0.0]], [1.0])
    for name, gradient in (("grpo", 0.0), ("cispo", -1.28)):
        given = inputs(*rows)
        POLICY_LOSSES[name](given).loss.sum().backward()
        assert given.policy_logprobs.grad.item() == pytest.approx(gradient)


@pytest.mark.parametrize(("advantage", "loss"), [(-1.0, 3.0), (1.0, -1.28)])
def test_dual_clip_bounds_only_what_bad_tokens_cost(advantage: float, loss: float) -> None:
    given = replace(inputs([[math.log(50.0)]], [[0.0]], [advantage]), dual_clip=3.0)
    found = POLICY_LOSSES["grpo"](given)
    assert found.loss.item() == pytest.approx(loss)
    assert found.is_clipped.item() == 1.0


def test_gspo_token_gives_each_turn_its_own_credit() -> None:
    given = inputs([[0.1, 0.1]], [[0.0, 0.0]], [0.0])
    given = replace(given, advantages=torch.tensor([[1.0, -1.0]]))
    POLICY_LOSSES["gspo_token"](given).loss.sum().backward()
    ratio = math.exp(0.1)
    assert given.policy_logprobs.grad.tolist()[0] == pytest.approx([-ratio, ratio])


@pytest.mark.parametrize(
    ("mode", "weights"), [("truncate", [0.5, 1.5, 2.0, 0.5]), ("mask", [0.0, 1.5, 0.0, 0.5])]
)
def test_a_correction_cuts_or_masks_single_tokens(mode: str, weights: list[float]) -> None:
    ratios = [0.1, 1.5, 9.0, 0.5]
    proximal = torch.tensor([[math.log(ratio) for ratio in ratios]], requires_grad=True)
    mask = torch.ones(1, 4)
    found = correction(proximal, torch.zeros(1, 4), mask, mode=mode, low=0.5, high=2.0)
    assert found.weights.tolist()[0] == pytest.approx(weights)
    assert found.is_cut.tolist()[0] == [1.0, 0.0, 1.0, 0.0]
    assert found.raw.tolist()[0] == pytest.approx(ratios)
    assert not found.weights.requires_grad


def test_gspo_has_one_ratio_for_a_sequence_and_counts_only_its_own_tokens() -> None:
    given = inputs([[0.3, 0.1, 9.0]], [[0.0, 0.0, 0.0]], [1.0], mask=[[1.0, 1.0, 0.0]])
    found = POLICY_LOSSES["gspo"](given)
    assert found.importance_ratio.tolist()[0] == pytest.approx([math.exp(0.2), math.exp(0.2), 0.0])


@pytest.mark.parametrize("moved", [-2.0, -0.6, 0.6, 2.0])
def test_gspo_keeps_the_ratio_of_a_policy_that_moved_far(moved: float) -> None:
    given = inputs([[moved, moved]], [[0.0, 0.0]], [1.0])
    found = POLICY_LOSSES["gspo"](given)
    assert found.importance_ratio.tolist()[0] == pytest.approx([math.exp(moved)] * 2)


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_missing_behaviour_logprobs_off_the_mask_poison_nothing(name: str) -> None:
    given = inputs([[-1.0, -1.0]], [[-1.2, math.nan]], [1.0], mask=[[1.0, 0.0]])
    found = POLICY_LOSSES[name](given)
    found.loss.sum().backward()
    assert torch.isfinite(found.loss).all()
    assert torch.isfinite(given.policy_logprobs.grad).all()


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_an_absurd_ratio_stays_finite(name: str) -> None:
    found = POLICY_LOSSES[name](inputs([[0.0]], [[-500.0]], [-1.0]))
    assert torch.isfinite(found.loss).all()


def test_k3_is_zero_at_the_reference_and_positive_elsewhere() -> None:
    policy = torch.tensor([[-1.0, -2.0, -3.0]])
    kl = k3_kl(policy, torch.tensor([[-1.0, -1.0, -9.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
    assert kl[0, 0] == 0
    assert kl[0, 1] == pytest.approx(math.e - 2, rel=1e-5)
    assert kl[0, 2] == 0


def test_the_three_estimators_agree_on_what_they_estimate() -> None:
    generator = torch.Generator().manual_seed(3)
    policy, reference = torch.log_softmax(0.3 * torch.randn(2, 12, generator=generator), dim=-1)
    exact = float((policy.exp() * (policy - reference)).sum())
    drawn = torch.multinomial(policy.exp(), 200_000, replacement=True, generator=generator)
    ours, theirs, mask = policy[drawn], reference[drawn], torch.ones(len(drawn))
    for name in ("k1", "k3"):
        assert float(KL_ESTIMATORS[name](ours, theirs, mask).mean()) == pytest.approx(exact, rel=0.03), name
    assert float(KL_ESTIMATORS["k2"](ours, theirs, mask).mean()) == pytest.approx(exact, rel=0.3), "biased"


def test_likelihood_loss_weighs_sequences() -> None:
    loss = likelihood_loss(torch.tensor([[-2.0], [-2.0]]), torch.ones(2, 1), torch.tensor([1.0, 0.5]))
    assert loss.tolist() == [[2.0], [1.0]]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("token_mean", 10 / 4), ("sequence_mean", (2 + 4) / 2), ("trajectory_mean", 3.0), ("constant", 10 / 20)],
)
def test_each_aggregation_is_the_mean_that_it_is_named_after(mode: str, expected: float) -> None:
    loss = torch.tensor([[2.0, 2.0, 2.0], [4.0, 99.0, 99.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    assert aggregate(loss, mode, mask, counts(mask)).item() == pytest.approx(expected)


@pytest.mark.parametrize("mode", MODES)
def test_microbatches_add_up_to_the_batch(mode: str) -> None:
    loss = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(5) < torch.tensor([[1], [5], [3], [2], [4], [1]])).float()
    whole = counts(mask)
    parts = sum(
        aggregate(loss[rows], mode, mask[rows], whole) for rows in (slice(0, 1), slice(1, 4), slice(4, 6))
    )
    torch.testing.assert_close(parts, aggregate(loss, mode, mask, whole))


def test_a_trajectory_of_two_sequences_counts_once_in_trajectory_mean() -> None:
    mask = torch.ones(3, 2)
    loss = torch.tensor([[1.0, 1.0], [3.0, 3.0], [6.0, 6.0]])
    whole = BatchCounts(num_tokens=6, num_sequences=3, num_trajectories=2, constant=8)
    found = aggregate(loss, "trajectory_mean", mask, whole, trajectory_tokens=torch.tensor([4.0, 4.0, 2.0]))
    assert found.item() == pytest.approx(((1 + 3) / 2 + 6) / 2)
