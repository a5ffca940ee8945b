"""What the updates of one step found and did: sums of the objective, and the metrics made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig

PerSequence = dict[int, tuple[float, float]]
"""trajectory_id -> (mean importance ratio, mean |policy - behaviour| logprob), all ranks."""


@dataclass(slots=True, kw_only=True)
class Gradient:
    """What a backward pass over a batch found; the gradient itself is on the weights."""

    samples: Sequence[Sample]
    """Of all ranks."""
    sums: dict[str, float]
    """"loss" and `objective.TOTALS`, over all ranks."""
    per_sequence: PerSequence


@dataclass(slots=True, kw_only=True)
class Update:
    gradient: Gradient
    grad_norm: float
    """Before clipping."""
    was_skipped: bool
    """True when a gradient was not finite; the weights did not move."""


@dataclass(slots=True, kw_only=True)
class StepResult:
    """What one step did, with all of its updates."""

    loss: float
    """Mean over the updates."""
    grad_norm: float
    """Before clipping; the largest of the updates."""
    num_updates: int
    num_skipped: int
    """Updates whose gradient was not finite."""
    learning_rate: float
    metrics: dict[str, float]
    """loss/*, policy/*, optimiser/* over the whole batch."""
    per_sequence: PerSequence = field(default_factory=dict)

    @property
    def was_skipped(self) -> bool:
        """True when any update was left out."""
        return self.num_skipped > 0

    @property
    def has_moved(self) -> bool:
        """True when the weights are not what they were."""
        return self.num_skipped < self.num_updates


def step_result(
    updates: Sequence[Update], algorithm: AlgorithmConfig, *, learning_rate: float, skipped_so_far: int
) -> StepResult:
    """The result of a step's updates. `skipped_so_far`: updates left out since the learner was made."""
    grad_norm = max((one.grad_norm for one in updates), key=lambda norm: (norm != norm, norm))
    metrics = update_metrics([one.gradient for one in updates], algorithm) | {
        "optimiser/grad_norm": grad_norm,
        "optimiser/learning_rate": learning_rate,
        "optimiser/skipped_steps": float(skipped_so_far),
    }
    per_sequence: PerSequence = {}
    for one in updates:
        per_sequence |= one.gradient.per_sequence
    return StepResult(
        loss=metrics["loss/total"],
        grad_norm=grad_norm,
        num_updates=len(updates),
        num_skipped=sum(one.was_skipped for one in updates),
        learning_rate=learning_rate,
        metrics=metrics,
        per_sequence=per_sequence,
    )


def update_metrics(gradients: Sequence[Gradient], algorithm: AlgorithmConfig) -> dict[str, float]:
    """loss/* and policy/* over the whole batch of a step."""
    sums = {name: sum(one.sums[name] for one in gradients) for name in gradients[0].sums}
    tokens = float(max(sum(sample.num_loss_tokens for one in gradients for sample in one.samples), 1))
    policy_tokens, count = max(sums["policy_tokens"], 1.0), len(gradients)
    metrics = {
        "loss/total": sums["loss"] / count,
        "loss/policy": sums["policy"] / count,
        "loss/likelihood": sums["likelihood"] / count,
        "loss/kl": sums["kl"] / tokens,
        "loss/entropy": sums["entropy"] / tokens,
        "policy/importance_ratio_mean": sums["ratio"] / policy_tokens,
        "policy/clip_fraction": sums["clipped"] / policy_tokens,
        "policy/logprob_gap": _rollout_gap(gradients[0]),
    }
    if algorithm.correction != "none":
        metrics["policy/correction_cut_fraction"] = sums["cut"] / policy_tokens
    return metrics


def _rollout_gap(first: Gradient) -> float:
    """Mean |policy - behaviour| logprob of the tokens that this experiment's policy sampled, nats.

    Of the first update: its forward sees the weights before any of the step's updates moved them. Replay
    entries, which another policy sampled, are left out; 0 when there is nothing else.
    """
    tokens: dict[int, int] = {}
    for sample in first.samples:
        if sample.replay_entry_id is None and sample.trajectory_id in first.per_sequence:
            tokens[sample.trajectory_id] = tokens.get(sample.trajectory_id, 0) + sample.num_loss_tokens
    total = sum(first.per_sequence[key][1] * count for key, count in tokens.items())
    return total / max(sum(tokens.values()), 1)
