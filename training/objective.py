"""The loss of a microbatch: policy gradient, likelihood, KL and entropy, by global counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from training.batching import MicroBatch
from training.config import AlgorithmConfig
from training.losses import POLICY_LOSSES, LossInputs
from training.losses.aggregation import BatchCounts, aggregate
from training.losses.kl import k3_kl
from training.losses.likelihood import likelihood_loss
from training.policy import TokenScores
from training.samples import Sample

TOTALS = ("policy", "likelihood", "kl", "entropy", "ratio", "clipped", "log_gap", "policy_tokens")
"""Names of the sums that a microbatch reports; they add up over microbatches and ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A microbatch's share of the batch loss and its sums for the metrics."""

    loss: torch.Tensor
    """Scalar with gradient."""
    totals: dict[str, float]
    """`TOTALS`: policy and likelihood are shares of the batch loss, kl, entropy, ratio, clipped and
    log_gap are sums over tokens."""
    per_sequence: dict[int, tuple[float, float]]
    """trajectory_id -> (mean importance ratio, mean |policy - behaviour| logprob); policy terms only."""


def batch_counts(samples: Sequence[Sample], max_tokens: int) -> BatchCounts:
    """Counts over the whole batch; every rank computes them from the same list."""
    return BatchCounts(
        num_tokens=float(sum(sample.num_loss_tokens for sample in samples)),
        num_sequences=float(len(samples)),
        num_trajectories=float(len({sample.trajectory_id for sample in samples})),
        max_tokens=max_tokens,
    )


def policy_objective(
    batch: MicroBatch,
    scores: TokenScores,
    counts: BatchCounts,
    config: AlgorithmConfig,
    reference_logprobs: torch.Tensor | None = None,
) -> Objective:
    """The GRPO-stage objective of one microbatch.

    L = aggregate(policy or likelihood loss + kl_coefficient k3) - entropy_coefficient mean entropy
    """
    mask = batch.loss_mask
    likelihood = mask * batch.as_likelihood[:, None]
    policy_mask = mask - likelihood
    inputs = LossInputs(
        policy_logprobs=scores.logprobs,
        behaviour_logprobs=batch.behaviour_logprobs,
        advantages=batch.advantages,
        mask=policy_mask,
        clip_low=config.clip_low,
        clip_high=config.clip_high,
    )
    tokens = POLICY_LOSSES[config.name](inputs)
    nll = likelihood_loss(scores.logprobs, likelihood, batch.likelihood_weights)
    policy = aggregate(tokens.loss, config.aggregation, mask, counts)
    imitation = aggregate(nll, config.aggregation, mask, counts)
    entropy = (scores.entropy * mask).sum()
    loss = policy + imitation - config.entropy_coefficient * entropy / max(counts.num_tokens, 1.0)
    kl = torch.zeros(())
    if reference_logprobs is not None:
        kl_tokens = k3_kl(scores.logprobs, reference_logprobs, mask)
        kl = kl_tokens.sum().detach()
        loss = loss + config.kl_coefficient * aggregate(kl_tokens, config.aggregation, mask, counts)
    gaps = _gaps(batch, scores, policy_mask)
    sums = (policy, imitation, kl, entropy, tokens.importance_ratio.sum(), tokens.is_clipped.sum(),
            gaps.sum(), policy_mask.sum())  # fmt: skip
    return Objective(
        loss=loss,
        totals=dict(zip(TOTALS, (float(value.detach()) for value in sums), strict=True)),
        per_sequence=_per_sequence(batch, tokens.importance_ratio, gaps, policy_mask),
    )


def likelihood_objective(
    batch: MicroBatch, scores: TokenScores, counts: BatchCounts, *, entropy_coefficient: float = 0.0
) -> Objective:
    """NLL over all loss tokens minus an entropy bonus, token mean (SFT)."""
    ones = torch.ones_like(batch.likelihood_weights)
    nll = likelihood_loss(scores.logprobs, batch.loss_mask, ones)
    bonus = entropy_coefficient * scores.entropy * batch.loss_mask
    loss = aggregate(nll - bonus, "token_mean", batch.loss_mask, counts)
    totals = dict.fromkeys(TOTALS, 0.0)
    totals["likelihood"] = float(loss.detach())
    totals["entropy"] = float((scores.entropy * batch.loss_mask).sum().detach())
    return Objective(loss=loss, totals=totals, per_sequence={})


def _gaps(batch: MicroBatch, scores: TokenScores, policy_mask: torch.Tensor) -> torch.Tensor:
    """|policy - behaviour| logprob of every sampled token, 0 elsewhere. [B, T]"""
    gap = (scores.logprobs.detach() - batch.behaviour_logprobs).abs()
    return torch.where(policy_mask > 0, gap, torch.zeros_like(gap))


def _per_sequence(
    batch: MicroBatch, ratio: torch.Tensor, gaps: torch.Tensor, mask: torch.Tensor
) -> dict[int, tuple[float, float]]:
    lengths = mask.sum(dim=-1)
    means = torch.stack([ratio.sum(dim=-1), gaps.sum(dim=-1)]) / lengths.clamp(min=1.0)
    rows = zip(batch.samples, lengths.tolist(), *means.tolist(), strict=True)
    return {sample.trajectory_id: (mean_ratio, gap) for sample, n, mean_ratio, gap in rows if n}
