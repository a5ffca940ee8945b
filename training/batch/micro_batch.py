"""What one forward-backward reads, as tensors.

Shapes: B sequences, T positions (the longest of the microbatch, right-padded), N images, R patch rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch

from training.batch.samples import Sample

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class TokenIndices:
    """Where things stand, found on the host: the device never has to search, nor the host to wait for it.

    Positions of `Sequences` laid flat count over [1, sum of lengths] when packed, else over [B * T].
    """

    scored: torch.Tensor
    """Position before each completion token: its hidden state predicts that token. [N]"""
    targets: torch.Tensor
    """Token ids of the completion tokens. [N]"""
    cells: torch.Tensor
    """Their places in the tensors of the loss, laid flat: [B * T]. [N]"""
    image_pads: torch.Tensor | None = None
    """Position of each image pad, in reading order. [pads]"""
    image_rows: torch.Tensor | None = None
    """Which row of the vision tower's output stands at each pad; None = row after row. [pads]"""


@dataclass(slots=True, kw_only=True)
class MicroBatch:
    """One forward-backward."""

    input_ids: torch.Tensor
    """[B, T]"""
    position_ids: torch.Tensor
    """Qwen3-VL's time, height and width positions. [3, B, T]"""
    mm_token_type_ids: torch.Tensor
    """1 on image pads. [B, T]"""
    loss_mask: torch.Tensor
    """1.0 on completion tokens. [B, T]"""
    behaviour_logprobs: torch.Tensor
    """[B, T]"""
    proximal_logprobs: torch.Tensor | None = None
    """By the trainer before the step's first update; None = the policy has not moved since. [B, T]"""
    advantages: torch.Tensor
    """[B, T]"""
    as_likelihood: torch.Tensor
    """True for NLL samples. [B]"""
    likelihood_weights: torch.Tensor
    """[B]"""
    imitation_weights: torch.Tensor
    """Of the NLL term beside the policy-gradient term. [B]"""
    trajectory_tokens: torch.Tensor
    """Loss tokens of the whole trajectory of each sequence. [B]"""
    rest_log_ratio: torch.Tensor
    """Sum of the log ratios of the other sequences of each sequence's trajectory. [B]"""
    rest_weight: torch.Tensor
    """Sum of the weights of the tokens of those other sequences by `algorithm.correction`. [B]"""
    pixel_values: torch.Tensor | None
    """Unique screenshots of the microbatch, or their bytes (`training.batch.byte_patches`). [R, values]"""
    image_grid_thw: torch.Tensor | None
    """Their patch grids. [N, 3]"""
    image_index: torch.Tensor | None
    """Which unique screenshot each image slot of the sequences shows, in reading order. [slots]"""
    samples: tuple[Sample, ...] = ()
    bounds: torch.Tensor | None = None
    """Packed: where each sequence starts, and the end of the last, int32. Then input_ids and
    mm_token_type_ids are [1, sum of lengths], position_ids [3, 1, sum of lengths]. [B + 1]"""
    lengths: tuple[int, ...] = ()
    """Packed: tokens of each sequence. [B]"""
    indices: TokenIndices | None = None
    vision: dict[str, torch.Tensor | list[int]] | None = None
    """What the vision tower reads besides pixels (`model.families`); None = it looks itself."""

    @property
    def has_likelihood(self) -> bool:
        """Whether a likelihood term reads any of its tokens."""
        return any(sample.as_likelihood or sample.imitation_weight for sample in self.samples)

    def to(self, device: torch.device) -> MicroBatch:
        """A copy on `device`; from pinned memory the device's work goes on meanwhile."""
        return _mapped(self, lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()))

    def pinned(self) -> MicroBatch:
        """A copy in page-locked memory."""
        return _mapped(self, torch.Tensor.pin_memory)


def _mapped(holder: T, change: Callable[[torch.Tensor], torch.Tensor]) -> T:
    """`holder`, a dataclass, with every tensor in it changed."""

    def changed(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return change(value)
        if isinstance(value, TokenIndices):
            return _mapped(value, change)
        if isinstance(value, dict):
            return {key: changed(one) for key, one in value.items()}
        return value

    values = {one.name: changed(getattr(holder, one.name)) for one in fields(holder)}  # type: ignore[arg-type]
    return replace(holder, **values)  # type: ignore[type-var]
