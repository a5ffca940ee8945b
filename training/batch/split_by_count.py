"""Which rank gets which samples, by their number: the same number of microbatches on every rank.

Collectives of FSDP2 need every rank to run the same modules equally often, so missing microbatches are filled
up with copies whose loss mask is zero, and every microbatch carries at least one image when any sample of the
step has one. `packing` splits by tokens instead.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from training.batch.samples import Sample


def without_loss(sample: Sample) -> Sample:
    """A filler: runs through the model like `sample` and contributes nothing."""
    return replace(
        sample,
        loss_mask=(0,) * len(sample.token_ids),
        advantage=0.0,
        token_advantages=(),
        as_likelihood=False,
    )


def split_over_ranks(
    samples: Sequence[Sample], *, num_ranks: int, microbatch_size: int
) -> list[list[list[Sample]]]:
    """[rank][microbatch][sample], the same number of microbatches on every rank.

    Samples are sorted by length first, so that a microbatch holds equals and pads little;
    fillers make up the difference. The result depends on nothing but the arguments.
    """
    if not samples:
        return [[] for _ in range(num_ranks)]
    ordered = sorted(samples, key=lambda sample: (len(sample.token_ids), sample.trajectory_id))
    num_rounds = math.ceil(len(ordered) / (num_ranks * microbatch_size))
    num_bins = num_rounds * num_ranks
    bins = [
        ordered[len(ordered) * i // num_bins : len(ordered) * (i + 1) // num_bins] for i in range(num_bins)
    ]
    bins = fill_bins(bins, ordered)
    return [bins[rank::num_ranks] for rank in range(num_ranks)]


def fill_bins(bins: Sequence[Sequence[Sample]], ordered: Sequence[Sample]) -> list[list[Sample]]:
    """`bins` with a filler in each that is empty, or has no image although the step has some.

    `ordered`: all samples, shortest first; the filler is the shortest that runs everything.
    """
    filler = without_loss(next((s for s in ordered if s.images), ordered[0]))
    has_images = bool(filler.images)
    return [
        [*one, filler] if not one or (has_images and not any(s.images for s in one)) else list(one)
        for one in bins
    ]
