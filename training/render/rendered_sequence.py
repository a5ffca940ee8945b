"""A trajectory, or a part of it, as the tokens and images that the trainer reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field

Grid = tuple[int, int, int]
"""Patches of one image: (time, height, width)."""


@dataclass(kw_only=True, slots=True)
class RenderedSequence:
    """A sequence of the trainer. The four token lists all have the length of `token_ids`."""

    token_ids: list[int] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    """1 exactly on completion tokens, the stop token included."""
    behaviour_logprobs: list[float] = field(default_factory=list)
    """Nats; 0.0 outside completions, NaN on completions that no policy sampled."""
    policy_versions: list[int] = field(default_factory=list)
    """-1 outside completions and on completions that no policy sampled."""
    images: list[str] = field(default_factory=list)
    """sha256 of each screenshot, in order of appearance. [num_images]"""
    grids: list[Grid] = field(default_factory=list)
    """Patch grid of each screenshot. [num_images]"""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Half-open token range of each completion. [num_completions]"""
    turns: list[int] = field(default_factory=list)
    """Which turn of the trajectory each completion belongs to. [num_completions]"""

    def append_prompt(self, token_ids: list[int]) -> None:
        """Add tokens that no one is trained on."""
        self._append(token_ids, 0, [0.0] * len(token_ids), -1)

    def append_completion(
        self, token_ids: list[int], logprobs: list[float], version: int | Sequence[int]
    ) -> None:
        """Add the tokens of one completion. `version`: of the weights, one for all or one per token."""
        start = len(self.token_ids)
        self._append(token_ids, 1, logprobs, version)
        self.spans.append((start, len(self.token_ids)))

    def _append(
        self, token_ids: list[int], mask: int, logprobs: list[float], version: int | Sequence[int]
    ) -> None:
        versions = [version] * len(token_ids) if isinstance(version, int) else list(version)
        assert len(token_ids) == len(logprobs) == len(versions), "one logprob and one version per token"
        self.token_ids += token_ids
        self.loss_mask += [mask] * len(token_ids)
        self.behaviour_logprobs += logprobs
        self.policy_versions += versions
