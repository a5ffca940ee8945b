"""The loss of a microbatch: policy gradient, likelihood, KL and entropy, by global counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from training.batch.micro_batch import MicroBatch
from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig
from training.contracts.config.algorithm import PER_SEQUENCE
from training.model.policy import TokenScores
from training.update.losses import POLICY_LOSSES, LossInputs, TokenLosses
from training.update.losses.aggregation import BatchCounts, aggregate
from training.update.losses.importance_correction import Correction, correction
from training.update.losses.kl import KL_ESTIMATORS
from training.update.losses.likelihood import likelihood_loss
from training.update.losses.policy_loss_contract import masked_difference

TOTALS = (
    "policy", "likelihood", "kl", "entropy", "ratio", "clipped", "policy_tokens", "cut",
)  # fmt: skip
"""Names of the sums that a microbatch reports; they add up over microbatches and ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A microbatch's share of the batch loss and its sums for the metrics."""

    loss: torch.Tensor
    """Scalar with gradient."""
    totals: torch.Tensor
    """`TOTALS`: policy and likelihood are shares of the batch loss, the others are sums over tokens; fp64, on
    the device, so that the host waits for it only at the end of the step. [len(TOTALS)]"""
    per_sequence: torch.Tensor
    """Sums over each sequence's tokens of (importance ratio, |proximal - behaviour| logprob, 1); policy terms
    only; on the device. [B, 3]"""


def batch_counts(samples: Sequence[Sample], constant: float = 1.0) -> BatchCounts:
    """Counts over the whole batch; every rank computes them from the same list."""
    return BatchCounts(
        num_tokens=float(sum(sample.num_loss_tokens for sample in samples)),
        num_sequences=float(len(samples)),
        num_trajectories=float(len({sample.trajectory_id for sample in samples})),
        constant=constant,
    )


def policy_objective(
    batch: MicroBatch,
    scores: TokenScores,
    counts: BatchCounts,
    config: AlgorithmConfig,
    reference_logprobs: torch.Tensor | None = None,
) -> Objective:
    """The GRPO-stage objective of one microbatch.

    L = aggregate(policy or likelihood loss + kl_coefficient KL) - entropy_coefficient mean entropy
    """
    mask = batch.loss_mask
    likelihood = mask * batch.as_likelihood[:, None]
    policy_mask = mask - likelihood
    share = partial(
        aggregate,
        mode=config.aggregation,
        mask=mask,
        counts=counts,
        trajectory_tokens=batch.trajectory_tokens,
    )
    advantages = batch.advantages
    kl_tokens = torch.zeros_like(mask)
    if reference_logprobs is not None:
        kl_tokens = KL_ESTIMATORS[config.kl_estimator](scores.logprobs, reference_logprobs, mask)
        if config.kl_estimator == "k1":
            advantages = advantages - config.kl_coefficient * kl_tokens.detach()
    tokens, weights = _policy_losses(batch, scores.logprobs, advantages, policy_mask, config)
    plain = scores.logprobs if scores.likelihood_logprobs is None else scores.likelihood_logprobs
    nll = likelihood_loss(plain, likelihood, batch.likelihood_weights)
    nll = nll + likelihood_loss(plain, policy_mask, batch.imitation_weights)
    policy, imitation = share(tokens.loss), share(nll)
    entropy = (scores.entropy * mask).sum()
    loss = policy + imitation - config.entropy_coefficient * entropy / max(counts.num_tokens, 1.0)
    if reference_logprobs is not None and config.kl_estimator != "k1":
        loss = loss + config.kl_coefficient * share(kl_tokens)
    sums = (policy, imitation, kl_tokens.sum(), entropy, tokens.importance_ratio.sum(),
            tokens.is_clipped.sum(), policy_mask.sum(), weights.is_cut.sum())  # fmt: skip
    gaps = masked_difference(_proximal(batch, scores.logprobs), batch.behaviour_logprobs, policy_mask).abs()
    return Objective(
        loss=loss,
        totals=torch.stack([value.detach().double() for value in sums]),
        per_sequence=_per_sequence(tokens.importance_ratio, gaps, policy_mask),
    )


def likelihood_objective(
    batch: MicroBatch, scores: TokenScores, counts: BatchCounts, *, entropy_coefficient: float = 0.0
) -> Objective:
    """NLL over all loss tokens minus an entropy bonus, token mean (SFT)."""
    ones = torch.ones_like(batch.likelihood_weights)
    nll = likelihood_loss(scores.logprobs, batch.loss_mask, ones)
    bonus = entropy_coefficient * scores.entropy * batch.loss_mask
    loss = aggregate(nll - bonus, "token_mean", batch.loss_mask, counts)
    entropy = (scores.entropy * batch.loss_mask).sum()
    totals = torch.zeros(len(TOTALS), dtype=torch.float64, device=loss.device)
    totals[TOTALS.index("likelihood")] = loss.detach()
    totals[TOTALS.index("entropy")] = entropy.detach()
    nothing = torch.zeros(len(batch.loss_mask), 3, device=loss.device)
    return Objective(loss=loss, totals=totals, per_sequence=nothing)


def _policy_losses(
    batch: MicroBatch,
    logprobs: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    config: AlgorithmConfig,
) -> tuple[TokenLosses, Correction]:
    """Token losses, weighted by the correction; their importance ratio is the one to the engine."""
    proximal = _proximal(batch, logprobs)
    is_recomputed = config.old_logprobs == "recomputed"
    tokens = POLICY_LOSSES[config.name](
        LossInputs(
            policy_logprobs=logprobs,
            old_logprobs=proximal if is_recomputed else batch.behaviour_logprobs,
            advantages=advantages,
            mask=mask,
            clip_low=config.clip_low,
            clip_high=config.clip_high,
            dual_clip=config.dual_clip,
            trajectory_tokens=batch.trajectory_tokens,
            rest_log_ratio=batch.rest_log_ratio,
        )
    )
    found = correction(
        proximal,
        batch.behaviour_logprobs,
        mask,
        mode=config.correction,
        low=config.correction_low,
        high=config.correction_high,
    )
    ratio = found.raw if is_recomputed else tokens.importance_ratio
    weights = found.weights
    if config.name in PER_SEQUENCE:
        # The tokens of a trajectory share one loss. With their mean weight each of its sequences has the
        # share of the gradient that `trajectory_log_ratio` takes it to have.
        own = weights.sum(dim=-1) + batch.rest_weight
        weights = (own / batch.trajectory_tokens.clamp(min=1.0))[:, None] * mask
    return replace(tokens, loss=tokens.loss * weights, importance_ratio=ratio), found


def _proximal(batch: MicroBatch, logprobs: torch.Tensor) -> torch.Tensor:
    """By the trainer before the step's first update, which is now where nothing was recomputed. [B, T]"""
    return logprobs.detach() if batch.proximal_logprobs is None else batch.proximal_logprobs


def _per_sequence(ratio: torch.Tensor, gaps: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.stack([ratio.sum(dim=-1), gaps.sum(dim=-1), mask.sum(dim=-1)], dim=-1).detach()
