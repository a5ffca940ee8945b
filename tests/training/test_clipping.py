"""Clipping on shards: the norm and the gradients are those of torch's own clipping."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from training.parallel import clip_gradients, full, shard, start_world, stop_world


@pytest.mark.parametrize("max_norm", [0.1, 1e6])
def test_gradients_are_clipped_as_torch_clips_them(max_norm: float) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 2))
    sharded = copy.deepcopy(plain)
    inputs = torch.randn(7, 5)
    start_world()
    try:
        shard(sharded, sharded, compute_dtype=torch.float32)
        for model in (plain, sharded):
            model(inputs).square().sum().backward()
        expected = torch.nn.utils.clip_grad_norm_(plain.parameters(), max_norm)
        assert clip_gradients(sharded.parameters(), max_norm) == pytest.approx(float(expected))
        for one, other in zip(plain.parameters(), sharded.parameters(), strict=True):
            torch.testing.assert_close(full(other.grad), one.grad)
    finally:
        stop_world()
