"""The eye test: whether the engine reads pictures and texts as the trainer does, and its stamp on numbers.

Engines break grounding between versions without a word. So a score says which engine measured it, and what
that engine made of a fixed set of pictures; two scores are compared by naming what differs.
"""

from pydantic import Field

from training.contracts.context_fingerprint import differences
from training.contracts.types import Wire
from training.contracts.weight_requests import Canary

NUM_TARGETS = 200
"""Drawn targets that real weights are asked to click."""
NUM_TRIED = 8
"""Targets after which is known whether the weights answer with clicks at all."""


class EngineFacts(Wire):
    """What measured: all that can change a score of the same weights on the same tasks."""

    engine: str
    """transformers or sglang."""
    version: str
    kernels: str
    """How attention is computed."""
    precision: str
    fingerprint: str
    """Tokenizer, prompt, dialect and picture limits; see `training.contracts.context_fingerprint`."""
    max_completion_tokens: int
    max_context_tokens: int


class EyeTestRequest(Wire):
    """What the policy server shall read."""

    is_whole: bool
    """False: the short form for a CPU."""


class Glimpse(Wire):
    """A picture or text that the engine read, and its logprobs of the answer."""

    name: str
    """Size of the picture, or length of the text."""
    canary: Canary
    is_hit: bool = False
    """A greedy answer clicks the target that it was asked for."""


class EyeTestAnswer(Wire):
    """What the engine made of it."""

    facts: EngineFacts
    glimpses: tuple[Glimpse, ...]
    targets: tuple[Glimpse, ...] = ()
    """Greedy answers; empty where fewer than half of the first ones were clicks, as of random weights."""


class Gap(Wire):
    """How far the engine is from the trainer on one picture or text."""

    name: str
    nats: float = Field(allow_inf_nan=False)
    """Mean difference of the logprobs of a token."""


class EyeTest(Wire):
    """The stamp of an evaluation."""

    facts: EngineFacts
    gaps: tuple[Gap, ...]
    limit: float
    """Nats above which a gap fails."""
    policy_version: int
    seconds: float = 0.0
    num_targets: int = 0
    """0 = the weights do not answer with clicks, or the short form was made."""
    num_hit: int = 0

    @property
    def failed(self) -> tuple[Gap, ...]:
        """Where engine and trainer read differently."""
        return tuple(gap for gap in self.gaps if not gap.nats <= self.limit)

    @property
    def problem(self) -> str:
        """What failed, by picture or text; "" when nothing did."""
        found = ", ".join(f"{gap.nats:.4f} nats at {gap.name}" for gap in self.failed)
        return found and f"the engine reads otherwise than the trainer: {found}; the limit is {self.limit:g}"

    @property
    def text(self) -> str:
        """The stamp in a line."""
        facts = self.facts
        parts = [
            f"{facts.engine} {facts.version}, {facts.kernels}, {facts.precision}",
            f"{facts.max_completion_tokens} of {facts.max_context_tokens} tokens",
            f"at most {max((gap.nats for gap in self.gaps), default=0.0):.2g} nats from the trainer",
            *([f"{self.num_hit} of {self.num_targets} targets hit"] if self.num_targets else []),
            *([f"FAILED: {self.problem}"] if self.failed else []),
        ]
        return "; ".join(parts)


FACT_WORDS = {
    "engine": "engine",
    "version": "engine version",
    "kernels": "kernels",
    "precision": "precision",
    "max_completion_tokens": "token budget of a completion",
    "max_context_tokens": "token budget of a context",
}


def stamp_differences(first: EyeTest | None, second: EyeTest | None) -> list[str]:
    """In words, what differs between what measured two numbers; empty when both were measured alike."""
    if first is None or second is None:
        return [] if first is second else ["one has no eye test"]
    found = [
        f"{words} {getattr(first.facts, name)} and {getattr(second.facts, name)}"
        for name, words in FACT_WORDS.items()
        if getattr(first.facts, name) != getattr(second.facts, name)
    ]
    found += differences(first.facts.fingerprint, second.facts.fingerprint)
    failed = ["first" if one is first else "second" for one in (first, second) if one.failed]
    return [*found, *(f"the {which} failed its eye test" for which in failed)]
