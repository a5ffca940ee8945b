"""Screenshots on their way to SGLang: the same pixels as the trainer's, in files that go by themselves."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import numpy as np
import pytest
import torch

from testing.training.tiny_model import renderer, screenshot
from training.sampler.sglang.patchify import patchify
from training.sampler.sglang.screenshot_decoders import ScreenshotDecoders
from training.sampler.sglang.screenshot_spool import LEVELS, ScreenshotSpool


@pytest.fixture(scope="module")
def reader():
    return renderer()


@pytest.mark.parametrize("size", [(512, 384), (1312, 736), (300, 500)])
def test_the_servers_patches_are_the_trainers_bit_for_bit(reader, size, tmp_path):
    png = screenshot(3, size)
    spool = ScreenshotSpool(reader.levels(), tmp_path)

    async def kept():
        pictures = ScreenshotDecoders(1)
        resized = reader.resized_size(size)

        async def write(png: bytes, path: Path) -> None:
            await pictures.write(png, path, resized, reader.image_processor.resample)

        image = await spool.keep(png, write)
        await pictures.close()
        return image

    image = asyncio.run(kept())
    processor = reader.image_processor
    theirs = patchify(
        torch.from_numpy(np.load(tmp_path / image.name)),
        torch.from_numpy(np.load(tmp_path / LEVELS)),
        patch=processor.patch_size,
        merge=processor.merge_size,
        temporal=processor.temporal_patch_size,
    )
    assert np.array_equal(theirs.numpy(), reader.pixels(png))


def test_a_screenshot_that_is_seen_again_is_written_once_and_goes_with_its_last_holder(reader, tmp_path):
    spool, written = ScreenshotSpool(reader.levels(), tmp_path), []

    async def write(png: bytes, path: Path) -> None:
        written.append(path)
        path.write_bytes(png)

    async def play():
        first, again = await spool.keep(b"one", write), await spool.keep(b"one", write)
        other = await spool.keep(b"two", write)
        return first, again, other

    first, again, other = asyncio.run(play())
    assert first is again
    assert len(written) == 2
    del first
    gc.collect()
    assert (tmp_path / again.name).exists()
    del again
    gc.collect()
    spool._remover.submit(lambda: None).result()  # files go in a thread
    assert [path.exists() for path in written] == [False, True]
    assert (tmp_path / other.name).exists()


def test_siblings_that_ask_for_one_screenshot_at_once_wait_for_one_file(reader, tmp_path):
    spool, written = ScreenshotSpool(reader.levels(), tmp_path), []

    async def write(png: bytes, path: Path) -> None:
        written.append(path)
        await asyncio.sleep(0)
        if len(written) == 1:
            raise OSError("cut off")
        path.write_bytes(png)

    async def play():
        failed = await asyncio.gather(*(spool.keep(b"one", write) for _ in range(3)), return_exceptions=True)
        kept = await asyncio.gather(*(spool.keep(b"one", write) for _ in range(3)))
        return failed, kept

    failed, kept = asyncio.run(play())
    assert all(isinstance(error, OSError) for error in failed)
    assert len(written) == 2
    assert len({id(image) for image in kept}) == 1


def test_a_cut_off_screenshot_is_told_and_the_next_one_is_read(reader, tmp_path):
    async def play():
        pictures = ScreenshotDecoders(1)
        with pytest.raises(OSError, match="truncated|broken"):
            await pictures.write(screenshot(1)[:300], tmp_path / "cut.npy", (64, 64), 3)
        await pictures.write(screenshot(1), tmp_path / "whole.npy", (64, 64), 3)
        await pictures.close()

    asyncio.run(play())
    assert np.load(tmp_path / "whole.npy").shape == (64, 64, 3)
    assert not (tmp_path / "cut.npy").exists()


def test_a_decoding_process_that_ended_is_replaced(reader, tmp_path):
    async def play():
        pictures = ScreenshotDecoders(1)
        await pictures.write(screenshot(1), tmp_path / "one.npy", (64, 64), 3)
        pictures._children[0].kill()
        await pictures._children[0].wait()
        await pictures.write(screenshot(2), tmp_path / "two.npy", (64, 64), 3)
        await pictures.close()

    asyncio.run(play())
    assert (tmp_path / "two.npy").exists()
