"""What the policy server asks of an engine: continue token sequences with images.

Engines: `training.engine_transformers` (CPU or one GPU, in this process).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from training.rendering import Grid


@dataclass(kw_only=True, slots=True)
class Sequence:
    """The growing token sequence of one trajectory; the engine may attach its own cache."""

    sequence_id: str
    token_ids: list[int] = field(default_factory=list)
    """Everything so far: prompts and completions."""
    pixels: list[np.ndarray] = field(default_factory=list)
    """Patch values of each image in `token_ids`. [num_images] of [rows, values]"""
    grids: list[Grid] = field(default_factory=list)
    """Patch grid of each image. [num_images]"""
    cache: object | None = None
    """Owned by the engine; dropped at every weight sync."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How one completion is drawn."""

    temperature: float
    """0 = greedy; logprobs are then taken at temperature 1."""
    max_tokens: int


@dataclass(kw_only=True, slots=True)
class Sampled:
    """One drawn completion."""

    token_ids: list[int]
    """Incl. the stop token when the model emitted it. [num_tokens]"""
    logprobs: list[float]
    """Of each token at the sampling temperature, nats. [num_tokens]"""
    finish_reason: Literal["stop", "length"]
    policy_version: int


class Engine(Protocol):
    """Draws completions for many sequences at once."""

    policy_version: int

    def generate(self, sequences: list[Sequence], samplings: list[Sampling]) -> list[Sampled]:
        """Continue every sequence until its stop token; appends what was drawn to `token_ids`."""
        ...

    def score(self, sequence: Sequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from position `start` on, nats."""
        ...

    def load_weights(self, folder: Path, policy_version: int) -> None:
        """Take the weights of a checkpoint folder. Raises ValueError when they do not fit."""
        ...
