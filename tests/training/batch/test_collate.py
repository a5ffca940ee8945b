"""Microbatches: the same number everywhere, every sample once, images where they are needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from training.batch.collate import collate
from training.batch.samples import Sample
from training.batch.split_by_count import split_over_ranks

PAD, IMAGE = 0, 5


def sample(number: int, length: int = 4, images: tuple[str, ...] = ()) -> Sample:
    tokens = (IMAGE,) * len(images) + (9,) * length
    mask = (0,) * (len(tokens) - 1) + (1,)
    return Sample(
        trajectory_id=number,
        group_id=1,
        token_ids=tokens,
        loss_mask=mask,
        behaviour_logprobs=(0.0,) * len(tokens),
        policy_versions=(0,) * len(tokens),
        images=images,
        grids=((1, 2, 2),) * len(images),
        advantage=1.0,
    )


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 5, 8, 13])
def test_every_sample_is_trained_on_once_and_ranks_have_equal_rounds(num_ranks: int, count: int) -> None:
    samples = [sample(number, length=2 + number % 5) for number in range(count)]
    shares = split_over_ranks(samples, num_ranks=num_ranks, microbatch_size=2)
    assert len({len(share) for share in shares}) == 1
    flat = [one for share in shares for part in share for one in part]
    assert Counter(one.trajectory_id for one in flat if one.num_loss_tokens) == dict.fromkeys(range(count), 1)
    assert all(part for share in shares for part in share)
    assert max(len(part) for share in shares for part in share) <= 3, "two samples and perhaps a filler"


def test_every_microbatch_has_an_image_when_any_sample_has_one() -> None:
    samples = [sample(number) for number in range(6)] + [sample(6, images=("a",))]
    shares = split_over_ranks(samples, num_ranks=2, microbatch_size=2)
    assert all(any(one.images for one in part) for share in shares for part in share)


def test_equal_screenshots_are_carried_once() -> None:
    pixels = {"a": np.full((4, 3), 1.0, dtype=np.float32), "b": np.full((4, 3), 2.0, dtype=np.float32)}
    rows = [sample(1, images=("a", "b")), sample(2, images=("b",)), sample(3)]
    batch = collate(rows, pixels.__getitem__, pad_id=PAD, image_pad_id=IMAGE)
    assert batch.pixel_values[:, 0].tolist() == [1.0] * 4 + [2.0] * 4
    assert batch.image_index.tolist() == [0, 1, 1]
    assert batch.input_ids.shape == (3, 6)
    assert batch.input_ids[2].tolist() == [9, 9, 9, 9, PAD, PAD]
    assert batch.loss_mask.sum() == 3
    assert batch.mm_token_type_ids.sum() == 3


@pytest.mark.parametrize("is_packed", [False, True])
def test_indices_say_where_the_layout_has_what(is_packed: bool) -> None:
    rows = [sample(1, 3, ("a", "b")), sample(2, 2, ("b",)), sample(3, 1)]
    pixels = {name: np.zeros((4, 3), dtype=np.float32) for name in "ab"}
    batch = collate(rows, pixels.__getitem__, pad_id=PAD, image_pad_id=IMAGE, is_packed=is_packed)
    tokens, indices = batch.input_ids.flatten(), batch.indices
    assert tokens[indices.image_pads].tolist() == [IMAGE] * 3
    assert indices.image_rows.tolist() == [0, 1, 1]
    assert tokens[indices.scored + 1].tolist() == indices.targets.tolist() == [9, 9]
    assert batch.loss_mask.flatten()[indices.cells].tolist() == [1.0, 1.0]
    starts = [0, 5, 8] if is_packed else [0, 5, 10]
    assert indices.scored.tolist() == [starts[0] + 3, starts[1] + 1], "a first token has nothing before it"


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_part_of_a_trajectory_knows_the_tokens_of_the_whole(is_packed: bool) -> None:
    part, whole = replace(sample(1), trajectory_tokens=7), sample(2)
    batch = collate([part, whole], {}.__getitem__, pad_id=PAD, image_pad_id=IMAGE, is_packed=is_packed)
    assert batch.trajectory_tokens.tolist() == [7, 1]


@pytest.mark.parametrize("order", [1, -1])
def test_recomputed_logprobs_of_some_are_kept_beside_those_of_none(order: int) -> None:
    known = replace(sample(1), proximal_logprobs=(0.0, -0.25, -0.5, -0.75))
    batch = collate([known, sample(2)][::order], {}.__getitem__, pad_id=PAD, image_pad_id=IMAGE)
    rows = [[0.0, -0.25, -0.5, -0.75], [0.0] * 4][::order]
    assert batch.proximal_logprobs.tolist() == rows
    assert collate([sample(2)], {}.__getitem__, pad_id=PAD, image_pad_id=IMAGE).proximal_logprobs is None


def test_a_frame_of_another_size_than_its_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="3 patch rows, but its grid is"):
        collate([sample(1, images=("a",))], lambda _: np.zeros((3, 3)), pad_id=PAD, image_pad_id=IMAGE)


def test_text_only_batches_carry_no_pixels() -> None:
    batch = collate([sample(1)], lambda _: np.zeros((4, 3)), pad_id=PAD, image_pad_id=IMAGE)
    assert batch.pixel_values is None
    assert isinstance(batch.input_ids, torch.Tensor)
