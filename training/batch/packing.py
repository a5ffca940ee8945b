"""Samples become packed microbatches: by tokens and by image patches, the same number on every rank.

A bin is one forward-backward of one rank. Longest first, each sample goes to the bin with the fewest
tokens that still has room for its tokens and for the patches of its new screenshots; when one fits
nowhere, every rank gets one more bin. A sample above a budget gets a bin of its own. So ranks have
equal numbers of forwards and nearly equal work, whatever the mix of lengths.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.batch.samples import Sample
from training.batch.split_by_count import fill_bins


@dataclass(slots=True)
class Bin:
    """One microbatch while it is filled."""

    samples: list[Sample] = field(default_factory=list)
    num_tokens: int = 0
    num_patches: int = 0
    images: set[str] = field(default_factory=set)
    """Its screenshots: each is carried once."""

    def new_patches(self, sample: Sample) -> int:
        """Patches that `sample` would add."""
        grids = dict(zip(sample.images, sample.grids, strict=True))
        return sum(math.prod(grid) for sha, grid in grids.items() if sha not in self.images)

    def has_room(self, sample: Sample, max_tokens: int, max_patches: int) -> bool:
        if not self.samples:
            return True
        tokens = self.num_tokens + len(sample.token_ids)
        return tokens <= max_tokens and self.num_patches + self.new_patches(sample) <= max_patches

    def add(self, sample: Sample) -> None:
        self.num_patches += self.new_patches(sample)
        self.num_tokens += len(sample.token_ids)
        self.images |= set(sample.images)
        self.samples.append(sample)


def pack_over_ranks(
    samples: Sequence[Sample], *, num_ranks: int, max_tokens: int, max_patches: int
) -> list[list[list[Sample]]]:
    """[rank][microbatch][sample], the same number of microbatches on every rank.

    The result depends on nothing but the arguments.
    """
    if not samples:
        return [[] for _ in range(num_ranks)]
    ordered = sorted(samples, key=lambda sample: (-len(sample.token_ids), sample.trajectory_id))
    total = sum(len(sample.token_ids) for sample in ordered)
    rounds = max(1, math.ceil(total / (max_tokens * num_ranks)))
    bins = _filled(ordered, rounds * num_ranks, max_tokens, max_patches)
    while bins is None:
        rounds += 1
        bins = _filled(ordered, rounds * num_ranks, max_tokens, max_patches)
    # Heaviest first, dealt out in turn: the bins of one round weigh about the same.
    bins.sort(key=lambda one: -one.num_tokens)
    filled = fill_bins([one.samples for one in bins], ordered[::-1])
    return [filled[rank::num_ranks] for rank in range(num_ranks)]


def _filled(ordered: Sequence[Sample], count: int, max_tokens: int, max_patches: int) -> list[Bin] | None:
    """All samples in `count` bins; None when one of them has no room."""
    bins = [Bin() for _ in range(count)]
    for sample in ordered:
        open_bins = [one for one in bins if one.has_room(sample, max_tokens, max_patches)]
        if not open_bins:
            return None
        min(open_bins, key=lambda one: one.num_tokens).add(sample)
    return bins
