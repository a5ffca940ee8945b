"""How old the policy was that sampled what is trained on.

staleness of a sample = training policy_version - oldest policy_version among its tokens.
The loop is synchronous by default (sample, train, sync), so fresh samples have staleness 0; with
`algorithm.max_staleness` 1 the next step is sampled while this one trains. Replay entries are
off-policy by intent, are bounded by `replay.max_policy_age` and not counted here.
"""

from __future__ import annotations

from collections.abc import Iterable

from training.samples import Sample

MAX_STALENESS = 1
"""Policy versions that a fresh sample may be behind at most, whatever the setting."""


def staleness(sample: Sample, policy_version: int) -> int:
    """Policy versions between sampling and training; 0 for a sample without versions."""
    versions = [v for v, bit in zip(sample.policy_versions, sample.loss_mask, strict=True) if bit and v >= 0]
    return max(0, policy_version - min(versions)) if versions else 0


def largest_staleness(samples: Iterable[Sample], policy_version: int) -> int:
    """Over the fresh samples of a batch."""
    fresh = (sample for sample in samples if sample.replay_entry_id is None)
    return max((staleness(sample, policy_version) for sample in fresh), default=0)
