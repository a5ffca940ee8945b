"""Token losses become one number, normalised by counts of the whole batch.

    token_mean       sum_t L_t / number of loss tokens of the batch       (DAPO, arXiv 2503.14476)
    sequence_mean    mean over sequences of the mean over their tokens     (GRPO, arXiv 2402.03300)
    trajectory_mean  mean over trajectories of the mean over all their tokens
    constant         sum_t L_t / (trajectories x max tokens of one)        (Dr. GRPO, arXiv 2503.20783)

Every mode is a weighted sum over tokens whose weights need only batch-wide counts. The
counts are all-reduced before the first backward, so the sum over microbatches and ranks is
the loss of the batch, whatever the split. A trajectory is one sequence unless its history is a
window; then it is one per distinct prefix, and trajectory_mean is the mode that keeps a long
trajectory from counting more than a short one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """Counts over all ranks and microbatches of one step."""

    num_tokens: float
    """Loss tokens."""
    num_sequences: float
    num_trajectories: float
    max_tokens: int
    """The constant of mode `constant`: the most loss tokens that a trajectory may have."""


def token_weights(
    mode: str, mask: torch.Tensor, counts: BatchCounts, trajectory_tokens: torch.Tensor | None = None
) -> torch.Tensor:
    """What each token's loss is multiplied with before the sum.

    mask [B, T]; trajectory_tokens [B] = loss tokens of the whole trajectory of each sequence
    (None: a sequence is a trajectory) -> [B, T].
    """
    lengths = mask.sum(dim=-1)
    totals = lengths if trajectory_tokens is None else trajectory_tokens
    return mask * _MODES[mode](lengths, totals, counts)[:, None]


def aggregate(
    token_loss: torch.Tensor,
    mode: str,
    mask: torch.Tensor,
    counts: BatchCounts,
    trajectory_tokens: torch.Tensor | None = None,
) -> torch.Tensor:
    """This microbatch's share of the batch loss (a scalar); shares add up to the batch loss."""
    return (token_loss * token_weights(mode, mask, counts, trajectory_tokens)).sum()


Weigher = Callable[[torch.Tensor, torch.Tensor, BatchCounts], torch.Tensor]


def _token_mean(lengths: torch.Tensor, totals: torch.Tensor, counts: BatchCounts) -> torch.Tensor:
    return torch.full_like(lengths, 1.0 / max(counts.num_tokens, 1.0))


def _sequence_mean(lengths: torch.Tensor, totals: torch.Tensor, counts: BatchCounts) -> torch.Tensor:
    return 1.0 / lengths.clamp(min=1.0) / max(counts.num_sequences, 1.0)


def _trajectory_mean(lengths: torch.Tensor, totals: torch.Tensor, counts: BatchCounts) -> torch.Tensor:
    return 1.0 / totals.clamp(min=1.0) / max(counts.num_trajectories, 1.0)


def _constant(lengths: torch.Tensor, totals: torch.Tensor, counts: BatchCounts) -> torch.Tensor:
    return torch.full_like(lengths, 1.0 / (max(counts.num_trajectories, 1.0) * max(counts.max_tokens, 1)))


_MODES: dict[str, Weigher] = {
    "token_mean": _token_mean,
    "sequence_mean": _sequence_mean,
    "trajectory_mean": _trajectory_mean,
    "constant": _constant,
}
