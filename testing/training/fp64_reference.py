"""The published objectives in numpy and fp64, spelt out trajectory by trajectory with loops.

Shares neither code nor autograd with `training.update`: gradients are central differences. Every quantity
that the papers hold still (the correction's weight, the old and the behaviour logprobs) is a constant here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Rows = list[np.ndarray]
"""One array per sequence of a trajectory, of its own tokens."""
STEP = 1e-6
"""Of the central differences: their error is about its square, and rounding about 1e-16 / STEP."""


def fp64_objective(tensors: dict[str, torch.Tensor], **settings: Any) -> tuple[float, np.ndarray]:
    """(loss, gradient [B, T]) of `objective_on_tensors.Tensors` under knobs of AlgorithmConfig."""
    masks = tensors["mask"].bool().numpy()
    owner = tensors.get("trajectory", torch.arange(len(masks))).numpy()
    old = tensors["behaviour"]
    if settings.get("old_logprobs") == "recomputed":
        old = tensors.get("proximal", tensors["policy"])

    def of(values: np.ndarray, key: int) -> Rows:
        return [values[row][masks[row]] for row in np.flatnonzero(owner == key)]

    def loss(policy: np.ndarray) -> float:
        total, tokens, keys = 0.0, int(masks.sum()), np.unique(owner)
        for key in keys:
            rows = of(policy, key)
            advantages = of(_by_token(tensors["advantages"], masks), key)
            losses = _surrogate(rows, of(old.double().numpy(), key), advantages, settings)
            weights = _weights(tensors, lambda values, key=key: of(values, key), settings)
            weighed = sum(float((row * weight).sum()) for row, weight in zip(losses, weights, strict=True))
            is_mean = settings.get("aggregation") == "trajectory_mean"
            length = sum(len(row) for row in rows)
            total += weighed / (length * len(keys)) if is_mean else weighed / tokens
        return total

    return _with_gradient(loss, tensors["policy"].double().numpy())


def _by_token(advantages: torch.Tensor, masks: np.ndarray) -> np.ndarray:
    """[B, T] of one advantage per sequence, or as it is."""
    found = advantages.double().numpy()
    return found if found.ndim == 2 else np.broadcast_to(found[:, None], masks.shape)


def _surrogate(policy: Rows, old: Rows, advantages: Rows, settings: dict[str, Any]) -> Rows:
    """Loss of every token of one trajectory."""
    name = settings.get("name", "grpo")
    gaps = [now - then for now, then in zip(policy, old, strict=True)]
    whole = sum(float(gap.sum()) for gap in gaps)
    if name == "gspo":
        whole /= sum(len(gap) for gap in gaps)
    if name in ("rloo", "gspo"):
        ratios = [np.full(len(row), np.exp(whole)) for row in gaps]
    else:
        ratios = [np.exp(row) for row in gaps]
    low, high = 1 - settings.get("clip_low", 0.2), 1 + settings.get("clip_high", 0.28)
    bound = settings.get("dual_clip", 3.0) or np.inf
    losses = []
    for r, a in zip(ratios, advantages, strict=True):
        loss = np.maximum(-r * a, -np.clip(r, low, high) * a)
        losses.append(np.where(a < 0, np.minimum(loss, bound * np.abs(a)), loss))
    return losses


def _weights(
    tensors: dict[str, torch.Tensor], of: Callable[[np.ndarray], Rows], settings: dict[str, Any]
) -> Rows:
    """Weight of every token of one trajectory to the policy that sampled it."""
    behaviour = of(tensors["behaviour"].double().numpy())
    proximal = of(tensors.get("proximal", tensors["policy"]).double().numpy())
    mode = settings.get("correction", "none")
    low, high = settings.get("correction_low", 0.0), settings.get("correction_high", 2.0)
    found = []
    for before, then in zip(proximal, behaviour, strict=True):
        weight = np.exp(before - then)
        if mode == "none":
            weight = np.ones_like(weight)
        elif mode == "truncate":
            weight = np.minimum(np.maximum(weight, low), high)
        else:
            weight = np.where((weight < low) | (weight > high), 0.0, weight)
        found.append(weight)
    return found


def _with_gradient(loss: Callable[[np.ndarray], float], at: np.ndarray) -> tuple[float, np.ndarray]:
    gradient = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        step = np.zeros_like(at)
        step[place] = STEP
        gradient[place] = (loss(at + step) - loss(at - step)) / (2 * STEP)
    return loss(at), gradient
