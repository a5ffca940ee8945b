"""Peak learning rates of the stages, and how they change over the steps."""

from __future__ import annotations

from dataclasses import dataclass

from training.contracts.config import OptimiserConfig, SftConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Peak learning rates, weight decay and learning-rate warm-up of one stage."""

    learning_rate: float
    muon_learning_rate: float
    """0 = AdamW for all."""
    weight_decay: float = 0.0
    warmup_steps: int = 0


def grpo_rates(config: OptimiserConfig) -> Rates:
    """Rates of the GRPO stage."""
    return Rates(
        learning_rate=config.learning_rate,
        muon_learning_rate=config.muon_learning_rate if config.name == "muon" else 0.0,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup_steps,
    )


def sft_rates(config: SftConfig) -> Rates:
    """Rates of the SFT stage; 0.02 is the weight decay that the recipe was measured with."""
    return Rates(
        learning_rate=config.learning_rate, muon_learning_rate=config.muon_learning_rate, weight_decay=0.02
    )


def warmup_scale(step: int, warmup_steps: int) -> float:
    """Linear warm-up for 0-based `step`: (step + 1) / warmup_steps, then 1."""
    return 1.0 if step >= warmup_steps else (step + 1) / warmup_steps


def sft_rate_scale(step: int, max_steps: int, *, warmup_steps: int = 30, decay_share: float = 0.2) -> float:
    """Rate multiplier of the SFT stage: linear warm-up, flat, linear decay to 0 at the end."""
    remaining = (max_steps - step) / max(1.0, decay_share * max_steps)
    return min(warmup_scale(step, warmup_steps), max(0.0, remaining))
