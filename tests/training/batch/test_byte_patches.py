"""Screenshots as bytes: the device reads from them what the host would have computed."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from testing.training.recorded_samples import record_samples, toy_learner
from tests.training.conftest import toy_config
from training.batch.screenshot_cache import ScreenshotCache
from training.distributed.world import start_world, stop_world


def png(size: tuple[int, int]) -> bytes:
    values = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["a", "a@5,-3"])
def test_values_of_bytes_are_bit_for_bit_those_of_patches(name: str, toy_renderer) -> None:
    pixels = ScreenshotCache(toy_renderer, fetch=lambda _: png((160, 100)))
    as_bytes = pixels.as_bytes(torch.device("cpu"))
    rows = as_bytes.rows(name)
    assert rows.dtype == np.uint8
    found = as_bytes.values(torch.from_numpy(rows))
    assert torch.equal(found, torch.from_numpy(pixels(name)))


def test_a_trainer_that_sends_bytes_finds_the_same_gradient(
    toy_model, toy_renderer, toy_desktops, tmp_path
) -> None:
    samples = record_samples(toy_desktops, num_groups=1, size=2)
    config = toy_config(toy_model, optimiser={"packing": True})
    world = start_world()
    try:
        found = []
        for sends_bytes in (False, True):
            trainer = toy_learner(config, world, toy_renderer, tmp_path / "frames")
            if sends_bytes:
                maker = trainer.microbatches
                maker.byte_pixels = trainer.pixels.as_bytes(world.device)
                assert maker.collate(samples).pixel_values.dtype == torch.uint8
            loss = trainer.policy_gradient(samples).sums["loss"]
            found.append((loss, [p.grad.full_tensor() for p in trainer.policy.parameters()]))
        assert found[0][0] == found[1][0]
        assert all(torch.equal(*pair) for pair in zip(found[0][1], found[1][1], strict=True))
    finally:
        stop_world()


def test_forgotten_screenshots_are_read_again(toy_renderer) -> None:
    asked: list[str] = []
    pixels = ScreenshotCache(toy_renderer, fetch=lambda sha: asked.append(sha) or png((64, 64)))
    pixels("a"), pixels("a")
    assert asked == ["a"]
    pixels.clear()
    pixels("a")
    assert asked == ["a", "a"]
