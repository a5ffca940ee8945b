"""Wrapped blocks, and a vision tower that is told what it would search for, compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb_vision

from testing.training.tiny_model import tiny_folder
from training.model.cpu_vision_tower import use_matmul_embedding
from training.model.families.registry import family_of
from training.model.load_sharded import recompute_blocks
from training.model.packed_attention import rotated, use_packed_vision
from training.model.policy import prepared

GRIDS = [(1, 4, 6), (1, 8, 4), (1, 6, 6)]


def plain_model(folder: Path) -> nn.Module:
    """As transformers loads it."""
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)


def as_on_a_gpu(model: nn.Module) -> None:
    use_matmul_embedding(model.model.visual)
    use_packed_vision(model.model.visual)


@pytest.mark.parametrize("change", [as_on_a_gpu, lambda model: prepared(model, torch.device("cpu"))])
def test_the_fast_vision_paths_see_what_transformers_sees(change: Callable[[nn.Module], object]) -> None:
    pixels = torch.randn(
        sum(t * h * w for t, h, w in GRIDS), 1536, generator=torch.Generator().manual_seed(0)
    )
    model = plain_model(tiny_folder())
    with torch.no_grad():
        expected = model.model.visual(pixels, grid_thw=torch.tensor(GRIDS), return_dict=True)
        change(model)
        told = family_of(model).tower_inputs(model, GRIDS)
        assert told.pop("lengths") == told["cu_seqlens"].diff().tolist()
        found = model.model.visual(pixels, grid_thw=torch.tensor(GRIDS), return_dict=True, **told)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output)
    torch.testing.assert_close(found.deepstack_features, expected.deepstack_features)


@pytest.mark.parametrize(("share", "chosen"), [(1.0, [0, 1, 2, 3]), (0.5, [1, 3]), (0.25, [3])])
def test_the_asked_share_of_the_blocks_is_recomputed(share: float, chosen: list[int]) -> None:
    model = nn.Module()
    model.model, model.config = nn.Module(), SimpleNamespace(model_type="qwen3_vl")
    model.model.language_model, model.model.visual = nn.Module(), nn.Module()
    model.model.language_model.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(4))
    model.model.visual.blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(4))
    recompute_blocks(model, share)
    for blocks in family_of(model).stacks(model):
        assert [number for number, block in enumerate(blocks) if "forward" in vars(block)] == chosen
        assert blocks[3](torch.ones(2)).shape == (2,)


def test_vision_heads_are_rotated_as_by_transformers() -> None:
    torch.manual_seed(0)
    heads = torch.randn(6, 2, 8, dtype=torch.bfloat16, requires_grad=True)
    angles = torch.randn(6, 4).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    expected, _ = apply_rotary_pos_emb_vision(heads, heads, cos, sin)
    found = rotated(heads, cos, sin)
    weight = torch.randn(6, 2, 8, dtype=torch.bfloat16)
    gradients = [torch.autograd.grad(out, heads, weight)[0] for out in (expected, found)]
    assert torch.equal(found, expected)
    assert torch.equal(*gradients)
