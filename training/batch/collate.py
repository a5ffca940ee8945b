"""Samples become the tensors of a microbatch, right-padded or packed end to end.

Shapes: B sequences, T positions (the longest of the microbatch, right-padded), N images, R patch rows.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from training.batch.micro_batch import MicroBatch, TokenIndices
from training.batch.rope_positions import rope_positions
from training.batch.samples import Sample

Pixels = Callable[[str], np.ndarray]
"""sha256 -> patch values of that screenshot, [t * h * w, values], or its bytes (see `byte_patches`)"""
MANY_ROWS = 8192
"""Patch rows from which screenshots are read by several threads."""


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
    if is_packed:
        input_ids, position_ids = _packed(tokens, positions)
    else:
        input_ids, position_ids = _side_by_side(tokens, positions, pad_id)
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


def _packed(tokens: list[list[int]], positions: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, sum of lengths], [3, 1, sum of lengths]"""
    return torch.tensor([[token for row in tokens for token in row]]), torch.cat(positions, dim=1)[:, None]


def _side_by_side(
    tokens: list[list[int]], positions: list[torch.Tensor], pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, T], [3, B, T]"""
    length = max(len(row) for row in tokens)
    position_ids = torch.zeros((3, len(tokens), length), dtype=torch.long)
    for row, own in enumerate(positions):
        # Padding counts on: transformers takes a jump of the positions for the start of another sequence.
        rest = torch.arange(length - own.shape[1]) + int(own.max()) + 1
        position_ids[:, row] = torch.cat([own, rest.expand(3, -1)], dim=1)
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


def _loss_tensors(samples: Sequence[Sample], length: int) -> dict[str, Any]:
    """The fields of MicroBatch that the loss reads, right-padded to `length`."""

    def per_sample(values: list, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype)

    def per_token(rows: list) -> torch.Tensor:
        return _padded(rows, length, 0.0, torch.float32)

    return {
        "loss_mask": per_token([s.loss_mask for s in samples]),
        "behaviour_logprobs": per_token([s.behaviour_logprobs for s in samples]),
        "proximal_logprobs": per_token([s.proximal_logprobs for s in samples])
        if any(s.proximal_logprobs for s in samples)
        else None,
        "rest_log_ratio": per_sample([s.rest_log_ratio for s in samples]),
        "rest_weight": per_sample([s.rest_weight for s in samples]),
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
