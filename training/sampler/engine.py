"""What the policy server asks of an engine: continue token sequences with images.

Engines: `engines.transformers_engine` (CPU or one GPU, in this process, behind
`engines.request_batching`) and `engines.sglang_engine` (server processes).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from training.contracts.turn_trace import SpentMs
from training.render.rendered_sequence import Grid

TopTokens = list[tuple[int, float]]
"""The likeliest tokens at one place, likeliest first: id and logprob at the sampling temperature, nats."""


@dataclass(kw_only=True, slots=True)
class EngineSequence:
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
    waited_s: Callable[[], float] = lambda: 0.0
    """Seconds in which its running (or last) generation could not go on: sleep, weight sync, restart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingSettings:
    temperature: float
    """0 = greedy; logprobs are then taken at temperature 1."""
    max_tokens: int
    top_logprobs: int = 0
    """How many of the likeliest tokens are reported at each place."""


@dataclass(kw_only=True, slots=True)
class SampledCompletion:
    token_ids: list[int]
    """Incl. the stop token when the model emitted it. [num_tokens]"""
    logprobs: list[float]
    """Of each token at the sampling temperature, nats. [num_tokens]"""
    finish_reason: Literal["stop", "length"]
    policy_version: int
    """Of the oldest weights that generated one of its tokens."""
    policy_versions: list[int] = field(default_factory=list)
    """Of the weights that generated each token; empty = `policy_version` for all. [num_tokens]"""
    spent_ms: SpentMs = field(default_factory=dict)
    """Where the engine's time went, as far as it can tell."""
    top: list[TopTokens] = field(default_factory=list)
    """At each place, as many as `SamplingSettings.top_logprobs` says; empty = none. [num_tokens]"""

    def __post_init__(self) -> None:
        assert len(self.logprobs) == len(self.token_ids), "one logprob per token"
        assert len(self.top) in (0, len(self.token_ids)), "one list of the likeliest tokens per token"
        assert len(self.policy_versions) in (0, len(self.token_ids)), "one version per token"


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineBuild:
    """What generates; part of the stamp on every evaluation."""

    engine: str
    """transformers or sglang."""
    version: str
    kernels: str
    """How attention is computed."""
    precision: str


class EngineError(Exception):
    """Raised when an engine cannot go on; the policy server ends with its message."""


class Engine(Protocol):
    """Generates completions for any number of sequences at once. Used from one event loop."""

    @property
    def policy_version(self) -> int:
        """Of the weights that generate the next completion."""
        ...

    async def prepare(self, png: bytes) -> Any:
        """An image as `EngineSequence.pixels` holds it."""
        ...

    async def generate(self, sequence: EngineSequence, sampling: SamplingSettings) -> SampledCompletion:
        """Continue the sequence until its stop token; appends the generated tokens to `token_ids`."""
        ...

    async def score(self, sequence: EngineSequence, start: int) -> list[float]:
        """Logprobs at temperature 1 of the tokens from position `start` on, nats."""
        ...

    async def load_weights(self, folder: Path, policy_version: int) -> None:
        """Take a checkpoint folder, or an adapter's folder for the weights of the start.

        Raises ValueError when they do not fit.
        """
        ...

    async def hold(self) -> None:
        """Interrupt running generations and start none until `release`; idempotent. For weight syncs.

        When it returns no request is in the engine; interrupted completions go on after `release`, their
        further tokens under the new version.
        """
        ...

    async def release(self, policy_version: int) -> None:
        """Generate again, with the weights `policy_version` and no cache of older ones."""
        ...

    async def build(self) -> EngineBuild: ...

    def describe(self) -> dict[str, Any]:
        """Name, running totals and, where it has any, servers; what GET /engine answers."""
        ...

    async def sleep(self) -> None:
        """Give the trainer the memory of its GPUs; generates nothing until `wake`. No GPU, no effect."""
        ...

    async def wake(self) -> None:
        """Undo `sleep`."""
        ...

    async def close(self) -> None:
        """End everything that the engine started."""
        ...
