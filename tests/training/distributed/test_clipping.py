"""Gradients of FSDP2: clipped on shards as torch clips whole ones; those of one process are not copied."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from training.distributed.fsdp import ReduceAlone, clip_gradients, full, shard
from training.distributed.world import start_world, stop_world


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


def test_gradients_of_one_process_stay_where_they_were_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: list[int] = []
    allocate = ReduceAlone.allocate

    def noted(self: ReduceAlone, *size: object, **options: object) -> torch.Tensor:
        found = allocate(self, *size, **options)  # type: ignore[arg-type]
        rooms.append(found.data_ptr())
        return found

    monkeypatch.setattr(ReduceAlone, "allocate", noted)
    model = nn.Linear(5, 3)
    inputs = torch.randn(7, 5)
    expected = torch.autograd.grad(model(inputs).square().sum(), list(model.parameters()))
    start_world()
    try:
        shard(model, model, compute_dtype=torch.float32)
        for _ in range(2):
            model.zero_grad()
            model(inputs).square().sum().backward()
            for parameter, gradient in zip(model.parameters(), expected, strict=True):
                torch.testing.assert_close(full(parameter.grad), gradient)
    finally:
        stop_world()
    assert len(rooms) == 4
    assert rooms[0::2] == rooms[1::2]
