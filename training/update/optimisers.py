"""Rates and schedule of a stage, and the optimiser that they make.

The recipe itself (Muon for inner 2-D matrices, AdamW for the rest) is `training.update.muon`; its
parts work on FSDP2 shards as they are, because the shards are DTensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from training.contracts.config import OptimiserConfig, SftConfig
from training.update.muon import Optimisers, make_optimisers


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Peak learning rates and warm-up of one stage."""

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


def build_optimiser(module: nn.Module, rates: Rates) -> Optimisers:
    """A fresh optimiser over the trainable weights of `module`."""
    return make_optimisers(
        module,
        learning_rate=rates.learning_rate,
        muon_learning_rate=rates.muon_learning_rate,
        weight_decay=rates.weight_decay,
    )


def warmup_scale(step: int, warmup_steps: int) -> float:
    """Linear warm-up for 0-based `step`: (step + 1) / warmup_steps, then 1."""
    return 1.0 if step >= warmup_steps else (step + 1) / warmup_steps
