"""What one update found and did: sums of the objective, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig


@dataclass(slots=True, kw_only=True)
class Gradient:
    """What a backward pass over a batch found; the gradient itself is on the weights."""

    sums: dict[str, float]
    """"loss" and `objective.TOTALS`, over all ranks."""
    per_sequence: dict[int, tuple[float, float]]
    """As in StepResult."""


@dataclass(slots=True, kw_only=True)
class StepResult:
    """What one step did."""

    loss: float
    grad_norm: float
    """Before clipping."""
    was_skipped: bool
    """True when a gradient was not finite; the weights did not move."""
    learning_rate: float
    metrics: dict[str, float]
    """loss/*, policy/*, optimiser/* over the whole batch."""
    per_sequence: dict[int, tuple[float, float]] = field(default_factory=dict)
    """trajectory_id -> (mean importance ratio, mean |policy - behaviour| logprob), all ranks."""


def update_metrics(
    sums: dict[str, float], samples: Sequence[Sample], algorithm: AlgorithmConfig
) -> dict[str, float]:
    """loss/* and policy/* over the whole batch. sums: "loss" and `objective.TOTALS`, over all ranks."""
    tokens = float(max(sum(sample.num_loss_tokens for sample in samples), 1))
    policy_tokens = max(sums["policy_tokens"], 1.0)
    metrics = {
        "loss/total": sums["loss"],
        "loss/policy": sums["policy"],
        "loss/likelihood": sums["likelihood"],
        "loss/kl": sums["kl"] / tokens,
        "loss/entropy": sums["entropy"] / tokens,
        "policy/importance_ratio_mean": sums["ratio"] / policy_tokens,
        "policy/clip_fraction": sums["clipped"] / policy_tokens,
        "policy/logprob_gap": sums["log_gap"] / policy_tokens,
    }
    if algorithm.correction != "none":
        metrics["policy/correction_cut_fraction"] = sums["cut"] / policy_tokens
    return metrics
