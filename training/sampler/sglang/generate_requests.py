"""What a generation sends to SGLang, and what is collected of the answers.

- Banned ids get a logit bias, which SGLang adds before the temperature and before the logprobs.
- Temperature 0 is greedy: SGLang itself makes temperature 1 with top-k 1 of it, so the logprobs are those
  at temperature 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from training.model.banned_tokens import BANNED_LOGIT
from training.sampler.engine import EngineSequence, SamplingSettings, TopTokens
from training.sampler.sglang import server_endpoints


@dataclass(slots=True)
class PartialCompletion:
    """A completion while it is generated, by one request or several."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[TopTokens] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    has_stopped: bool = False
    is_cut: bool = False
    """The last request was ended by a weight sync."""

    def take(self, answer: server_endpoints.Generated) -> None:
        """Add the tokens of one request."""
        self.token_ids += answer.token_ids
        self.logprobs += answer.logprobs
        self.top += answer.top
        self.versions += [int(answer.weight_version)] * len(answer.token_ids)
        self.has_stopped = answer.finish == "stop"
        self.is_cut = answer.finish == "abort"


@dataclass(slots=True)
class Usage:
    """Running totals, for benchmarks and for the page."""

    num_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    num_continued: int = 0
    """Requests that went on after a weight sync had cut them."""
    num_restarted: int = 0
    """Requests that were started again because their server had ended."""
    prepare_s: float = 0.0
    """Waited for screenshots to be decoded, all turns together."""
    server_s: float = 0.0
    """Waited for SGLang's answers, all requests together."""

    def add(self, answer: server_endpoints.Generated, seconds: float) -> None:
        self.num_requests += 1
        self.prompt_tokens += answer.prompt_tokens
        self.cached_tokens += answer.cached_tokens
        self.server_s += seconds


def sampling_parameters(
    sampling: SamplingSettings, *, stop_ids: Sequence[int], banned_ids: Sequence[int]
) -> dict[str, Any]:
    """SGLang's sampling_params."""
    return {
        "temperature": sampling.temperature,
        "max_new_tokens": sampling.max_tokens,
        "stop_token_ids": list(stop_ids),
        "logit_bias": {str(token): BANNED_LOGIT for token in banned_ids},
        "skip_special_tokens": False,
        "no_stop_trim": True,
    }


def image_entries(sequence: EngineSequence) -> list[dict[str, Any]]:
    """The request's images, as `training.sampler.sglang.processors.qwen_vl` reads them."""
    return [
        {"file": image.name, "sha256": image.digest, "grid": list(grid)}
        for image, grid in zip(sequence.pixels, sequence.grids, strict=True)
    ]
