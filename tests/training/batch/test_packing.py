"""Packed microbatches: budgets, equal numbers, and one policy whatever the layout."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from tests.training.batch.test_collate import IMAGE, PAD, sample
from training.batch.collate import collate
from training.batch.packing import pack_over_ranks
from training.model.packed_attention import Bounds, attend_within

SAMPLES = st.lists(
    st.tuples(st.integers(1, 30), st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=80)
@given(rows=SAMPLES, num_ranks=st.integers(1, 4), tokens=st.integers(20, 80), patches=st.integers(8, 40))
def test_every_sample_once_equal_rounds_and_both_budgets(rows, num_ranks, tokens, patches) -> None:
    samples = [sample(number, length, tuple(images)) for number, (length, images) in enumerate(rows)]
    shares = pack_over_ranks(samples, num_ranks=num_ranks, max_tokens=tokens, max_patches=patches)
    assert len({len(share) for share in shares}) == 1, "collectives need equally many forwards everywhere"
    bins = [one for share in shares for one in share]
    assert sorted(s.trajectory_id for one in bins for s in one if s.num_loss_tokens) == list(range(len(rows)))
    for one in bins:
        assert one
        own = [s for s in one if s.num_loss_tokens]
        if len(own) > 1:
            assert sum(len(s.token_ids) for s in own) <= tokens
            grids = {sha: grid for s in own for sha, grid in zip(s.images, s.grids, strict=True)}
            assert sum(math.prod(grid) for grid in grids.values()) <= patches
    if any(images for _, images in rows):
        assert all(any(s.images for s in one) for one in bins), "every rank runs the vision tower"


def test_shared_screenshots_count_once() -> None:
    samples = [sample(number, 2, ("a", "b")) for number in range(4)]
    shares = pack_over_ranks(samples, num_ranks=1, max_tokens=1000, max_patches=8)
    assert [len(one) for one in shares[0]] == [4]


def test_packing_keeps_each_sequences_own_positions() -> None:
    pixels = {"a": torch.zeros(4, 3).numpy()}
    rows = [sample(1, 3, ("a",)), sample(2, 2)]
    packed = collate(rows, pixels.__getitem__, pad_id=PAD, image_pad_id=IMAGE, is_packed=True)
    padded = collate(rows, pixels.__getitem__, pad_id=PAD, image_pad_id=IMAGE)
    assert packed.input_ids.tolist() == [[5, 9, 9, 9, 9, 9]]
    assert packed.bounds.tolist() == [0, 4, 6]
    assert packed.lengths == (4, 2)
    assert packed.position_ids[:, 0, :4].tolist() == padded.position_ids[:, 0].tolist()
    assert packed.position_ids[:, 0, 4:].tolist() == padded.position_ids[:, 1, :2].tolist()
    assert torch.equal(packed.loss_mask, padded.loss_mask)


@pytest.mark.parametrize("is_causal", [True, False])
def test_packed_attention_is_block_diagonal(is_causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(9, heads, 8, generator=generator) for heads in (4, 2, 2))
    starts = [0, 4, 5, 9]
    block = torch.zeros(9, 9, dtype=torch.bool)
    for start, end in itertools.pairwise(starts):
        block[start:end, start:end] = True
    mask = block & torch.ones(9, 9).tril().bool() if is_causal else block
    expected = functional.scaled_dot_product_attention(
        *(part.transpose(0, 1)[None] for part in (query, key, value)), attn_mask=mask, enable_gqa=True
    )[0].transpose(0, 1)
    bounds = Bounds(torch.tensor(starts, dtype=torch.int32), [4, 1, 4])
    assert bounds.wide.tolist() == starts
    assert bounds.wide is bounds.wide, "kernels keep what they derive from it by its identity"
    found = attend_within(query, key, value, bounds, scaling=None, is_causal=is_causal)
    torch.testing.assert_close(found, expected)
