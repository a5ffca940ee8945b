"""Losses: what the clip does, what NaN may not do, and how token losses become one number."""

from __future__ import annotations

import math

import pytest
import torch

from training.losses import POLICY_LOSSES, LossInputs
from training.losses.aggregation import BatchCounts, aggregate
from training.losses.kl import k3_kl
from training.losses.likelihood import likelihood_loss

MODES = ("token_mean", "sequence_mean", "trajectory_mean", "constant")


def inputs(policy: list, behaviour: list, advantages: list, mask: list | None = None) -> LossInputs:
    rows = torch.tensor(policy, requires_grad=True)
    return LossInputs(
        policy_logprobs=rows,
        behaviour_logprobs=torch.tensor(behaviour),
        advantages=torch.tensor(advantages),
        mask=torch.ones_like(rows) if mask is None else torch.tensor(mask),
        clip_low=0.2,
        clip_high=0.28,
    )


def counts(mask: torch.Tensor, max_tokens: int = 10) -> BatchCounts:
    rows = float(len(mask))
    return BatchCounts(
        num_tokens=float(mask.sum()), num_sequences=rows, num_trajectories=rows, max_tokens=max_tokens
    )


@pytest.mark.parametrize("name", sorted(POLICY_LOSSES))
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


def test_gspo_has_one_ratio_for_a_sequence_and_counts_only_its_own_tokens() -> None:
    given = inputs([[0.3, 0.1, 9.0]], [[0.0, 0.0, 0.0]], [1.0], mask=[[1.0, 1.0, 0.0]])
    found = POLICY_LOSSES["gspo"](given)
    assert found.importance_ratio.tolist()[0] == pytest.approx([math.exp(0.2), math.exp(0.2), 0.0])


@pytest.mark.parametrize("name", sorted(POLICY_LOSSES))
def test_missing_behaviour_logprobs_off_the_mask_poison_nothing(name: str) -> None:
    given = inputs([[-1.0, -1.0]], [[-1.2, math.nan]], [1.0], mask=[[1.0, 0.0]])
    found = POLICY_LOSSES[name](given)
    found.loss.sum().backward()
    assert torch.isfinite(found.loss).all()
    assert torch.isfinite(given.policy_logprobs.grad).all()


@pytest.mark.parametrize("name", sorted(POLICY_LOSSES))
def test_an_absurd_ratio_stays_finite(name: str) -> None:
    found = POLICY_LOSSES[name](inputs([[0.0]], [[-500.0]], [-1.0]))
    assert torch.isfinite(found.loss).all()


def test_k3_is_zero_at_the_reference_and_positive_elsewhere() -> None:
    policy = torch.tensor([[-1.0, -2.0, -3.0]])
    kl = k3_kl(policy, torch.tensor([[-1.0, -1.0, -9.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
    assert kl[0, 0] == 0
    assert kl[0, 1] == pytest.approx(math.e - 2, rel=1e-5)
    assert kl[0, 2] == 0


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
    whole = BatchCounts(num_tokens=6, num_sequences=3, num_trajectories=2, max_tokens=4)
    found = aggregate(loss, "trajectory_mean", mask, whole, trajectory_tokens=torch.tensor([4.0, 4.0, 2.0]))
    assert found.item() == pytest.approx(((1 + 3) / 2 + 6) / 2)
