"""Peak learning rates of the stages, and how they change over the steps."""

import math
from dataclasses import dataclass

from training.contracts.config import OptimiserConfig, SftConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the optimisers of one stage are made with."""

    learning_rate: float
    muon_learning_rate: float
    """0 = AdamW for all."""
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's."""
    vision_rate: float = 1.0
    """Of the vision tower, as a factor of the rates above."""
    merger_rate: float = 1.0
    """Of the mergers between tower and text, likewise."""


def grpo_rates(config: OptimiserConfig) -> Rates:
    return Rates(
        learning_rate=config.learning_rate,
        muon_learning_rate=config.muon_learning_rate if config.name == "muon" else 0.0,
        weight_decay=config.weight_decay,
        betas=(config.beta1, config.beta2),
        vision_rate=config.vision_rate,
        merger_rate=config.merger_rate,
    )


def sft_rates(config: SftConfig) -> Rates:
    """Rates of the SFT stage; 0.02 is the weight decay that the recipe was measured with."""
    return Rates(
        learning_rate=config.learning_rate, muon_learning_rate=config.muon_learning_rate, weight_decay=0.02
    )


def grpo_rate_scale(step: int, config: OptimiserConfig, num_steps: int) -> float:
    """Rate multiplier of the GRPO stage for 0-based `step`: linear rise, then flat or falling to `end_rate`.

    linear 1 - p, cosine (1 + cos(pi p)) / 2, stretched to end at `end_rate`; p runs from 0 after the rise to
    1 at `num_steps`, as in transformers' schedules.
    """
    if step < config.warmup_steps or config.decay == "constant":
        return warmup_scale(step, config.warmup_steps)
    p = min(1.0, (step - config.warmup_steps) / max(1, num_steps - config.warmup_steps))
    shape = 1 - p if config.decay == "linear" else (1 + math.cos(math.pi * p)) / 2
    return config.end_rate + (1 - config.end_rate) * shape


def warmup_scale(step: int, warmup_steps: int) -> float:
    """Linear warm-up for 0-based `step`: (step + 1) / warmup_steps, then 1."""
    return 1.0 if step >= warmup_steps else (step + 1) / warmup_steps


def sft_rate_scale(step: int, max_steps: int, *, warmup_steps: int = 30, decay_share: float = 0.2) -> float:
    """Rate multiplier of the SFT stage: linear warm-up, flat, linear decay to 0 at the end."""
    remaining = (max_steps - step) / max(1.0, decay_share * max_steps)
    return min(warmup_scale(step, warmup_steps), max(0.0, remaining))
