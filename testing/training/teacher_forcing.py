"""transformers' own forward over rendered sequences: the reference of tests for trainer and engine.

Shapes: B sequences, T tokens of the longest, N images in all, P patches in all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from training.batch.rope_positions import rope_positions
from training.model.banned_tokens import without_tokens
from training.render.rendered_sequence import RenderedSequence

LoadPixels = Callable[[str], np.ndarray]
"""sha256 of a screenshot -> its patch values [rows, values]."""


def model_inputs(
    samples: list[RenderedSequence],
    load_pixels: LoadPixels,
    *,
    image_pad_id: int,
    pad_id: int,
    merge: int = 2,
) -> dict[str, torch.Tensor]:
    """Keyword arguments of the model's forward for a right-padded batch.

    Attention is causal, so padding at the right end reaches no real token and needs no attention mask.
    Samples without images leave the pixel tensors out (the text-only ablation).
    """
    longest = max(len(sample.token_ids) for sample in samples)
    input_ids = torch.full((len(samples), longest), pad_id)
    position_ids = torch.zeros((3, len(samples), longest), dtype=torch.long)
    for row, sample in enumerate(samples):
        length = len(sample.token_ids)
        input_ids[row, :length] = torch.tensor(sample.token_ids)
        position_ids[:, row, :length] = torch.from_numpy(
            rope_positions(sample.token_ids, sample.grids, image_pad_id, merge)
        )
    inputs = {
        "input_ids": input_ids,
        "position_ids": position_ids,
        "mm_token_type_ids": (input_ids == image_pad_id).int(),
    }
    grids = [grid for sample in samples for grid in sample.grids]
    if grids:
        pixels = [load_pixels(sha) for sample in samples for sha in sample.images]
        inputs["pixel_values"] = torch.from_numpy(np.concatenate(pixels))
        inputs["image_grid_thw"] = torch.tensor(grids)
        assert len(inputs["pixel_values"]) == sum(t * h * w for t, h, w in grids), (
            "patch rows match the grids"
        )
    return inputs


def padded(
    samples: list[RenderedSequence], values: Callable[[RenderedSequence], list], fill: float
) -> torch.Tensor:
    """One of the token lists of every sample, right-padded. [B, T]"""
    longest = max(len(sample.token_ids) for sample in samples)
    return torch.tensor([values(s) + [fill] * (longest - len(s.token_ids)) for s in samples])


def completion_logprobs(
    logits: torch.Tensor,
    input_ids: torch.Tensor,
    temperature: float = 1.0,
    banned_ids: tuple[int, ...] | list[int] = (),
) -> torch.Tensor:
    """Logprob of every token given those before it; position 0 gets 0. [B, T], fp32

    logits: [B, T, V]. The logits are divided by the sampling temperature before the softmax; tokens that
    the engine never samples have no probability.
    """
    scaled = without_tokens(logits[:, :-1].float(), list(banned_ids)) / temperature
    targets = input_ids[:, 1:].unsqueeze(-1)
    logprobs = scaled.gather(-1, targets).squeeze(-1) - scaled.logsumexp(-1)
    return torch.nn.functional.pad(logprobs, (1, 0))


def teacher_forced_logprobs(
    model: torch.nn.Module,
    sample: RenderedSequence,
    load_pixels: LoadPixels,
    *,
    image_pad_id: int,
    pad_id: int,
    merge: int = 2,
    temperature: float = 1.0,
    banned_ids: tuple[int, ...] | list[int] = (),
) -> list[float]:
    """Logprobs of the completion tokens of one sequence by one full forward pass, in order, nats."""
    inputs = model_inputs([sample], load_pixels, image_pad_id=image_pad_id, pad_id=pad_id, merge=merge)
    with torch.no_grad():
        logits = model(**inputs, use_cache=False).logits
    logprobs = completion_logprobs(logits, inputs["input_ids"], temperature, banned_ids)[0]
    return logprobs[torch.tensor(sample.loss_mask).bool()].tolist()
