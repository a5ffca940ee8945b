"""What the policy server asks of an engine: continue token sequences with images.

Engines: `training.sampler.engines.transformers_engine` (CPU or one GPU, in this process, behind the batches
of
`training.sampler.engines.continuous_batching`) and `training.sampler.engines.sglang_engine` (servers of
their own).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from training.render.token_sequences import Grid


@dataclass(kw_only=True, slots=True)
class Sequence:
    """The growing token sequence of one trajectory; the engine may attach its own cache."""

    sequence_id: str
    token_ids: list[int] = field(default_factory=list)
    """Everything so far: prompts and completions."""
    pixels: list[Any] = field(default_factory=list)
    """Each image in `token_ids` as the engine's `prepare` made it: patch values, or a handle. [num_images]"""
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
    """Of the oldest weights that drew a token of it."""
    policy_versions: list[int] = field(default_factory=list)
    """Weights that drew each token; empty = all by `policy_version`. [num_tokens]"""

    def __post_init__(self) -> None:
        assert len(self.logprobs) == len(self.token_ids), "one logprob per token"
        assert len(self.policy_versions) in (0, len(self.token_ids)), "one version per token"


class EngineError(Exception):
    """Raised when an engine cannot go on; the policy server ends with its message."""


class Engine(Protocol):
    """Draws completions for any number of sequences at once. Used from one event loop."""

    @property
    def policy_version(self) -> int:
        """Of the weights that the next completion is drawn with."""
        ...

    async def prepare(self, png: bytes) -> Any:
        """An image as `Sequence.pixels` holds it."""
        ...

    async def draw(self, sequence: Sequence, sampling: Sampling) -> Sampled:
        """Continue the sequence until its stop token; appends what was drawn to `token_ids`."""
        ...

    async def score(self, sequence: Sequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from position `start` on, nats."""
        ...

    async def load_weights(self, folder: Path, policy_version: int) -> None:
        """Take the weights of a checkpoint folder. Raises ValueError when they do not fit."""
        ...

    async def hold(self) -> None:
        """Interrupt what is being drawn and draw nothing until `release`; idempotent. For weight syncs.

        When it returns no request is in the engine; interrupted completions go on after `release`, their
        further tokens under the new version.
        """
        ...

    async def release(self, policy_version: int) -> None:
        """Draw again, with the weights `policy_version`, and with nothing that older ones computed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Name, running totals and, where it has any, servers; what GET /engine answers."""
        ...

    async def sleep(self) -> None:
        """Give the trainer the memory of its GPUs; until `wake` nothing is drawn. Others do nothing."""
        ...

    async def wake(self) -> None:
        """Undo `sleep`."""
        ...

    async def close(self) -> None:
        """End everything that the engine started."""
        ...
