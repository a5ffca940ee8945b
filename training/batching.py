"""Samples become padded microbatches, the same number on every rank.

Shapes: B sequences, T positions (the longest of the microbatch, right-padded), N images,
R patch rows. Collectives of FSDP2 need every rank to run the same modules equally often, so
every rank gets the same number of microbatches (filled up with copies whose loss mask is
zero) and every microbatch carries at least one image when any sample of the step has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from training.model_inputs import rope_positions
from training.samples import Sample

Pixels = Callable[[str], np.ndarray]
"""sha256 -> patch values of that screenshot, [t * h * w, values]"""


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
    pixel_values: torch.Tensor | None
    """Unique screenshots of the microbatch. [R, values]"""
    image_grid_thw: torch.Tensor | None
    """Their patch grids. [N, 3]"""
    image_index: torch.Tensor | None
    """Which unique screenshot each image slot of the sequences shows, in reading order. [slots]"""
    samples: tuple[Sample, ...] = ()
    bounds: torch.Tensor | None = None
    """Packed: where each sequence starts, and the end of the last, int32. Then input_ids and
    mm_token_type_ids are [1, sum of lengths], position_ids [3, 1, sum of lengths]. [B + 1]"""
    longest: int = 0
    """Packed: tokens of the longest sequence."""

    def to(self, device: torch.device) -> MicroBatch:
        """A copy on `device`."""
        names = [name for name in self.__slots__ if isinstance(getattr(self, name), torch.Tensor)]
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


def without_loss(sample: Sample) -> Sample:
    """A filler: runs through the model like `sample` and contributes nothing."""
    return replace(
        sample,
        loss_mask=(0,) * len(sample.token_ids),
        advantage=0.0,
        token_advantages=(),
        as_likelihood=False,
    )


def split_over_ranks(
    samples: Sequence[Sample], *, num_ranks: int, microbatch_size: int
) -> list[list[list[Sample]]]:
    """[rank][microbatch][sample], the same number of microbatches on every rank.

    Samples are sorted by length first, so that a microbatch holds equals and pads little;
    fillers make up the difference. The result depends on nothing but the arguments.
    """
    if not samples:
        return [[] for _ in range(num_ranks)]
    ordered = sorted(samples, key=lambda sample: (len(sample.token_ids), sample.trajectory_id))
    num_rounds = math.ceil(len(ordered) / (num_ranks * microbatch_size))
    num_bins = num_rounds * num_ranks
    bins = [
        ordered[len(ordered) * i // num_bins : len(ordered) * (i + 1) // num_bins] for i in range(num_bins)
    ]
    bins = fill_bins(bins, ordered)
    return [bins[rank::num_ranks] for rank in range(num_ranks)]


def fill_bins(bins: Sequence[Sequence[Sample]], ordered: Sequence[Sample]) -> list[list[Sample]]:
    """`bins` with a filler in each that is empty, or has no image although the step has some.

    `ordered`: all samples, shortest first; the filler is the shortest that runs everything.
    """
    filler = without_loss(next((s for s in ordered if s.images), ordered[0]))
    has_images = bool(filler.images)
    return [
        [*one, filler] if not one or (has_images and not any(s.images for s in one)) else list(one)
        for one in bins
    ]


def collate(
    samples: Sequence[Sample],
    pixels: Pixels,
    *,
    pad_id: int,
    image_pad_id: int,
    merge_size: int = 2,
    is_packed: bool = False,
) -> MicroBatch:
    """Right-padded, or packed, tensors of `samples`. Each distinct screenshot is carried once.

    Attention is causal, so padding at the right end reaches no real token and needs no mask. The tensors of
    the loss are padded in either layout: they hold a number per token, not a vector.
    """
    length = max(len(sample.token_ids) for sample in samples)
    # Positions are computed per sequence in either layout: packing shifts no sequence's own positions.
    rows = [
        torch.from_numpy(rope_positions(list(s.token_ids), list(s.grids), image_pad_id, merge_size))
        for s in samples
    ]
    bounds = None
    if is_packed:
        input_ids = torch.tensor([[token for s in samples for token in s.token_ids]])
        positions = torch.cat(rows, dim=1)[:, None]
        lengths = torch.tensor([0, *(len(s.token_ids) for s in samples)])
        bounds = lengths.cumsum(0).int()
    else:
        input_ids = _padded([s.token_ids for s in samples], length, pad_id, torch.long)
        positions = torch.zeros((3, len(samples), length), dtype=torch.long)
        for row, own in enumerate(rows):
            positions[:, row, : own.shape[1]] = own
    shas = [sha for sample in samples for sha in sample.images]
    grids = {sha: grid for sample in samples for sha, grid in zip(sample.images, sample.grids, strict=True)}
    unique = list(dict.fromkeys(shas))
    values = _pixel_values(unique, grids, pixels)
    place = {sha: index for index, sha in enumerate(unique)}
    return MicroBatch(
        input_ids=input_ids,
        position_ids=positions,
        mm_token_type_ids=(input_ids == image_pad_id).int(),
        loss_mask=_padded([s.loss_mask for s in samples], length, 0.0, torch.float32),
        behaviour_logprobs=_padded([s.behaviour_logprobs for s in samples], length, 0.0, torch.float32),
        advantages=_padded([_advantages(s) for s in samples], length, 0.0, torch.float32),
        as_likelihood=torch.tensor([s.as_likelihood for s in samples], dtype=torch.bool),
        likelihood_weights=torch.tensor([s.likelihood_weight for s in samples], dtype=torch.float32),
        imitation_weights=torch.tensor([s.imitation_weight for s in samples], dtype=torch.float32),
        trajectory_tokens=torch.tensor(
            [s.trajectory_tokens or s.num_loss_tokens for s in samples], dtype=torch.float32
        ),
        pixel_values=values,
        image_grid_thw=torch.tensor([grids[sha] for sha in unique], dtype=torch.long) if unique else None,
        image_index=torch.tensor([place[sha] for sha in shas], dtype=torch.long) if unique else None,
        samples=tuple(samples),
        bounds=bounds,
        longest=length if is_packed else 0,
    )


def _advantages(sample: Sample) -> Sequence[float]:
    return sample.token_advantages or (sample.advantage,) * len(sample.token_ids)


def _padded(rows: list, length: int, fill: float, dtype: torch.dtype) -> torch.Tensor:
    out = torch.full((len(rows), length), fill, dtype=dtype)
    for index, row in enumerate(rows):
        out[index, : len(row)] = torch.tensor(row, dtype=dtype)
    return out


def _pixel_values(unique: list[str], grids: dict, pixels: Pixels) -> torch.Tensor | None:
    if not unique:
        return None
    arrays = [pixels(sha) for sha in unique]
    for sha, array in zip(unique, arrays, strict=True):
        if len(array) != math.prod(grids[sha]):
            raise ValueError(f"frame {sha[:12]}: {len(array)} patch rows, but its grid is {grids[sha]}")
    return torch.from_numpy(np.concatenate(arrays)).to(torch.float32)
