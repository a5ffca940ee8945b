"""The trainer's own objective on given token tensors, and its loss and gradient."""

from __future__ import annotations

from typing import Any

import torch

from testing.training.trl_reference import MAX_TOKENS
from training.batch.micro_batch import MicroBatch
from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig
from training.model.policy import TokenScores
from training.update.losses.aggregation import BatchCounts
from training.update.losses.importance_correction import correction
from training.update.objective import Objective, policy_objective

Tensors = dict[str, torch.Tensor]
"""As `trl_reference.make_tensors` makes them, in fp32 or fp64; where needed also "proximal" [B, T], "plain"
(logprobs at temperature 1) [B, T], "imitation" [B], "likelihood" [B], and "trajectory" [B]: which trajectory
each sequence is a part of."""


def our_objective(tensors: Tensors, **settings: Any) -> tuple[float, torch.Tensor]:
    """(loss, gradient with respect to the policy logprobs [B, T]) under these knobs of AlgorithmConfig."""
    policy = tensors["policy"].clone().requires_grad_()
    objective = objective_of(tensors | {"policy": policy}, **settings)
    objective.loss.backward()
    return float(objective.loss.detach()), policy.grad


def objective_of(tensors: Tensors, **settings: Any) -> Objective:
    """The same with its sums, before the backward pass."""
    config = AlgorithmConfig(**settings)
    batch, counts = _batch(tensors, tensors["policy"].detach(), config)
    reference = tensors["reference"] if config.kl_coefficient else None
    scores = TokenScores(tensors["policy"], tensors["entropy"], tensors.get("plain"))
    return policy_objective(batch, scores, counts, config, reference)


def _batch(tensors: Tensors, policy: torch.Tensor, config: AlgorithmConfig) -> tuple[MicroBatch, BatchCounts]:
    mask, rows = tensors["mask"], len(tensors["mask"])
    advantages = tensors["advantages"]
    zeros = torch.zeros(rows, dtype=policy.dtype)
    trajectory = tensors.get("trajectory", torch.arange(rows))
    same = (trajectory[:, None] == trajectory).to(policy.dtype)
    lengths = mask.sum(dim=-1)
    old = tensors.get("proximal", tensors["behaviour"])
    log_ratio = ((policy - old) * mask).sum(dim=-1)
    proximal = tensors.get("proximal", policy)
    weight = correction(
        proximal,
        tensors["behaviour"],
        mask,
        mode=config.correction,
        low=config.correction_low,
        high=config.correction_high,
    ).weights.sum(dim=-1)
    batch = MicroBatch(
        input_ids=torch.zeros_like(mask).long(),
        position_ids=torch.zeros(3, *mask.shape),
        mm_token_type_ids=torch.zeros_like(mask),
        loss_mask=mask,
        behaviour_logprobs=tensors["behaviour"],
        proximal_logprobs=tensors.get("proximal"),
        advantages=advantages if advantages.ndim == 2 else advantages[:, None].expand_as(mask),
        as_likelihood=tensors.get("likelihood", zeros).bool(),
        likelihood_weights=tensors.get("likelihood", zeros),
        imitation_weights=tensors.get("imitation", zeros),
        trajectory_tokens=same @ lengths,
        rest_log_ratio=same @ log_ratio - log_ratio,
        rest_weight=same @ weight - weight,
        pixel_values=None,
        image_grid_thw=None,
        image_index=None,
        samples=tuple(
            Sample(
                trajectory_id=row,
                group_id=0,
                token_ids=(),
                loss_mask=(),
                behaviour_logprobs=(),
                policy_versions=(),
            )
            for row in range(rows)
        ),
    )
    counts = BatchCounts(
        num_tokens=float(mask.sum()),
        num_sequences=float(rows),
        num_trajectories=float(len(trajectory.unique())),
        constant=float(len(trajectory.unique()) * MAX_TOKENS),
    )
    return batch, counts
