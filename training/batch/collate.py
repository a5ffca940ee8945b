"""Samples become padded microbatches, the same number on every rank.

Shapes: B sequences, T positions (the longest of the microbatch, right-padded), N images,
R patch rows. Collectives of FSDP2 need every rank to run the same modules equally often, so
every rank gets the same number of microbatches (filled up with copies whose loss mask is
zero) and every microbatch carries at least one image when any sample of the step has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import TypeVar

import numpy as np
import torch

from training.batch.rope_positions import rope_positions
from training.batch.samples import Sample

Pixels = Callable[[str], np.ndarray]
"""sha256 -> patch values of that screenshot, [t * h * w, values], or its bytes (see `byte_patches`)"""
MANY_ROWS = 8192
"""Patch rows from which screenshots are read by several threads."""
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
    """What the vision tower reads besides pixels (`model.vision_tower_inputs`); None = it looks itself."""

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
    multiple: int = 1,
) -> MicroBatch:
    """Right-padded, or packed, tensors of `samples`. Each distinct screenshot is carried once.

    Attention is causal, so padding at the right end reaches no real token and needs no mask. The tensors of
    the loss are padded in either layout: they hold a number per token, not a vector. `multiple`: each
    sequence is padded to a multiple of this number of tokens first, for kernels that are made anew for every
    length.
    """
    tokens = [[*s.token_ids, *[pad_id] * (-len(s.token_ids) % multiple)] for s in samples]
    lengths = [len(row) for row in tokens]
    # Positions are computed per sequence in either layout: packing shifts no sequence's own positions.
    positions = [
        torch.from_numpy(rope_positions(row, list(sample.grids), image_pad_id, merge_size))
        for row, sample in zip(tokens, samples, strict=True)
    ]
    starts = list(accumulate(lengths if is_packed else [max(lengths)] * len(lengths), initial=0))
    input_ids, position_ids = (_packed if is_packed else _side_by_side)(tokens, positions, pad_id)
    images = _images(samples, pixels)
    indices = _scored_indices(samples, starts, max(lengths))
    if images:
        indices.image_pads = (input_ids.flatten() == image_pad_id).nonzero()[:, 0]
        indices.image_rows = _image_rows(images, merge_size)
    return MicroBatch(
        input_ids=input_ids,
        position_ids=position_ids,
        mm_token_type_ids=(input_ids == image_pad_id).int(),
        **_loss_tensors(samples, max(lengths)),
        pixel_values=images.values if images else None,
        image_grid_thw=images.grids if images else None,
        image_index=images.index if images else None,
        samples=tuple(samples),
        bounds=torch.tensor(starts, dtype=torch.int32) if is_packed else None,
        lengths=tuple(lengths) if is_packed else (),
        indices=indices,
    )


def _packed(
    tokens: list[list[int]], positions: list[torch.Tensor], pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, sum of lengths], [3, 1, sum of lengths]"""
    return torch.tensor([[token for row in tokens for token in row]]), torch.cat(positions, dim=1)[:, None]


def _side_by_side(
    tokens: list[list[int]], positions: list[torch.Tensor], pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, T], [3, B, T]"""
    length = max(len(row) for row in tokens)
    position_ids = torch.zeros((3, len(tokens), length), dtype=torch.long)
    for row, own in enumerate(positions):
        position_ids[:, row, : own.shape[1]] = own
    return _padded(tokens, length, pad_id, torch.long), position_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images:
    """The distinct screenshots of a microbatch and who shows them; see MicroBatch for shapes."""

    values: torch.Tensor
    grids: torch.Tensor
    index: torch.Tensor


def _images(samples: Sequence[Sample], pixels: Pixels) -> _Images | None:
    shas = [sha for sample in samples for sha in sample.images]
    if not shas:
        return None
    grids = {sha: grid for sample in samples for sha, grid in zip(sample.images, sample.grids, strict=True)}
    unique = list(dict.fromkeys(shas))
    place = {sha: index for index, sha in enumerate(unique)}
    if sum(math.prod(grids[sha]) for sha in unique) < MANY_ROWS:
        arrays = [pixels(sha) for sha in unique]
    else:
        with ThreadPoolExecutor(8) as threads:  # decoding and cutting leave the interpreter to others
            arrays = list(threads.map(pixels, unique))
    for sha, array in zip(unique, arrays, strict=True):
        if len(array) != math.prod(grids[sha]):
            raise ValueError(f"frame {sha[:12]}: {len(array)} patch rows, but its grid is {grids[sha]}")
    values = torch.from_numpy(np.concatenate(arrays))
    return _Images(
        values=values if values.dtype == torch.uint8 else values.to(torch.float32),
        grids=torch.tensor([grids[sha] for sha in unique], dtype=torch.long),
        index=torch.tensor([place[sha] for sha in shas], dtype=torch.long),
    )


def _scored_indices(samples: Sequence[Sample], starts: Sequence[int], width: int) -> TokenIndices:
    """`starts`: where each sequence begins in the layout; `width`: T of the tensors of the loss."""
    columns = [np.flatnonzero(np.asarray(sample.loss_mask[1:]) > 0) for sample in samples]
    before = [start + own for start, own in zip(starts, columns, strict=False)]
    cells = [width * row + own + 1 for row, own in enumerate(columns)]
    targets = [np.asarray(s.token_ids)[own + 1] for s, own in zip(samples, columns, strict=True)]
    joined = [torch.from_numpy(np.concatenate(part).astype(np.int64)) for part in (before, targets, cells)]
    return TokenIndices(scored=joined[0], targets=joined[1], cells=joined[2])


def _image_rows(images: _Images, merge_size: int) -> torch.Tensor | None:
    if torch.equal(images.index, torch.arange(len(images.grids))):
        return None
    sizes = images.grids.prod(dim=-1) // merge_size**2
    ends = sizes.cumsum(0)
    return torch.cat([torch.arange(int(ends[i] - sizes[i]), int(ends[i])) for i in images.index.tolist()])


def _loss_tensors(samples: Sequence[Sample], length: int) -> dict[str, torch.Tensor]:
    """The fields of MicroBatch that the loss reads, right-padded to `length`."""

    def per_sample(values: list, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype)

    def per_token(rows: list) -> torch.Tensor:
        return _padded(rows, length, 0.0, torch.float32)

    return {
        "loss_mask": per_token([s.loss_mask for s in samples]),
        "behaviour_logprobs": per_token([s.behaviour_logprobs for s in samples]),
        "advantages": per_token([_advantages(s) for s in samples]),
        "as_likelihood": per_sample([s.as_likelihood for s in samples], torch.bool),
        "likelihood_weights": per_sample([s.likelihood_weight for s in samples]),
        "imitation_weights": per_sample([s.imitation_weight for s in samples]),
        "trajectory_tokens": per_sample([s.trajectory_tokens or s.num_loss_tokens for s in samples]),
    }


def _advantages(sample: Sample) -> Sequence[float]:
    return sample.token_advantages or (sample.advantage,) * len(sample.token_ids)


def _padded(rows: list, length: int, fill: float, dtype: torch.dtype) -> torch.Tensor:
    out = torch.full((len(rows), length), fill, dtype=dtype)
    for index, row in enumerate(rows):
        out[index, : len(row)] = torch.tensor(row, dtype=dtype)
    return out
