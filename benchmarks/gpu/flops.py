"""Floating-point operations of a forward pass of one of `benchmarks.gpu.sizes`, counted from its dimensions.

Counted are matrix products only, 2 operations per multiply-add:

    text, linear      2 tokens (q, k, v, o and the three matrices of the MLP) per block
    text, attention   4 head_width heads sum of T (T + 1) / 2: causal, so half of the square, per block;
                      a recurrent state is decayed, read, corrected and read: 6 width^2 heads tokens
    vision, linear    2 patches (4 hidden^2 + the matrices of the MLP) per block, the patch embedding, and the
                      mergers (one to the embeddings, in Qwen3-VL three more to the text blocks)
    vision, attention 4 hidden sum of P^2 per block: every patch of an image sees every other; in a window of
                      64 patches (Qwen2.5-VL) those, and one that is cut counts as whole
    head              2 hidden vocabulary per completion token: logits are made nowhere else

A training step of weights that all learn costs three forwards; where only adapters in the text blocks learn,
the text costs two (no gradients of its weights; the adapters themselves are not counted) and the vision tower
one. Recomputing, norms, rotations, softmax,
embedding look-ups and the optimiser are not counted. Model FLOPs utilisation (MFU) is this count over what
the matrix units could have done in the time: `PEAK` per GPU and second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.gpu.sizes import Size

PEAK = 989.4e12
"""Dense bf16 operations per second of an H100 or H200 (SXM), by the vendor's datasheet."""
WINDOW = 64
"""Patches of a window of Qwen2.5-VL's tower."""
MERGED = 4
"""Patches per image token."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a step computes on."""

    lengths: Sequence[int]
    """Tokens of each sequence."""
    patches: Sequence[int]
    """Patches of each distinct screenshot of each microbatch."""
    scored: int
    """Completion tokens."""


def forward_flops(size: Size, work: Work) -> dict[str, float]:
    """Operations of one forward, by part."""
    tokens, patches = sum(work.lengths), sum(work.patches)
    attended = size.heads * size.head_width
    gate = attended if size.linear_heads else 0  # Qwen3.5's full attention has one
    full = size.layers // size.full_every
    state = size.linear_heads * size.linear_width
    per_token = size.hidden * (
        full * (2 * attended + gate + 2 * size.kv_heads * size.head_width)
        + (size.layers - full) * (5 * state + 2 * size.linear_heads)
        + size.layers * 3 * size.intermediate
    )
    wide = MERGED * size.vision_hidden
    patch_values = 3 * 2 * size.patch**2  # colours x frames x pixels
    per_patch = patch_values * size.vision_hidden + size.vision_depth * (
        4 * size.vision_hidden**2 + size.vision_matrices * size.vision_hidden * size.vision_intermediate
    )
    whole = len(size.whole_blocks) or size.vision_depth
    seen = sum(whole * p * p + (size.vision_depth - whole) * p * WINDOW for p in work.patches)
    merging = (1 + len(size.deepstack)) * (wide * wide + wide * size.hidden)
    pairs = sum(length * (length + 1) / 2 for length in work.lengths)
    return {
        "text_linear": 2.0 * tokens * per_token,
        "text_attention": 4.0 * full * attended * pairs,
        "text_state": 6.0 * (size.layers - full) * state * size.linear_width * tokens,
        "vision_linear": 2.0 * (patches * per_patch + patches / MERGED * merging),
        "vision_attention": 4.0 * size.vision_hidden * seen,
        "head": 2.0 * work.scored * size.hidden * size.vocabulary,
    }


def utilisation(
    size: Size, work: Work, seconds: float, num_gpus: int, *, only_adapters: bool = False
) -> dict[str, float]:
    """`mfu` as above; `mfu_square` by the common count, in which causal attention costs the whole square."""
    parts = forward_flops(size, work)
    text = 2 if only_adapters else 3
    vision = 1 if only_adapters else 3
    exact = sum((vision if name.startswith("vision") else text) * cost for name, cost in parts.items())
    square = exact + text * parts["text_attention"]
    budget = seconds * num_gpus * PEAK
    return {"mfu": exact / budget, "mfu_square": square / budget}
