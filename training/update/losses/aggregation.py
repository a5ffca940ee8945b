"""Token losses become one number, normalised by counts of the whole batch.

    token_mean       sum_t L_t / number of loss tokens of the batch       (DAPO, arXiv 2503.14476)
    sequence_mean    mean over sequences of the mean over their tokens     (GRPO, arXiv 2402.03300)
    trajectory_mean  mean over trajectories of the mean over all their tokens
    constant         sum_t L_t / (trajectories of a step x max tokens of one)    (Dr. GRPO, arXiv 2503.20783)

Every mode is a weighted sum over tokens whose weights need only batch-wide counts. Every rank counts
the same list, so the sum over microbatches and ranks is the loss of the batch, whatever the split. The
parts of several updates share the batch's counts evenly: a token weighs the same in each. A trajectory
is one sequence unless its history is a window; then it is one per distinct prefix, and trajectory_mean
is the mode that keeps a long trajectory from counting more than a short one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """Counts over all ranks and microbatches of one update."""

    num_tokens: float
    """Loss tokens."""
    num_sequences: float
    num_trajectories: float
    constant: float
    """Of mode `constant`: loss tokens that an update may have at most: no group that leaves changes it."""

    def of_part(self, num_parts: int) -> BatchCounts:
        """For one of the parts of a batch with these counts, whatever its size; `constant` is an update's."""
        return replace(
            self,
            num_tokens=self.num_tokens / num_parts,
            num_sequences=self.num_sequences / num_parts,
            num_trajectories=self.num_trajectories / num_parts,
        )


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
    return torch.full_like(lengths, 1.0 / max(counts.constant, 1.0))


_MODES: dict[str, Weigher] = {
    "token_mean": _token_mean,
    "sequence_mean": _sequence_mean,
    "trajectory_mean": _trajectory_mean,
    "constant": _constant,
}
