"""How old the policy was that sampled what is trained on.

staleness of a sample = training policy_version - oldest policy_version among its tokens.
With `algorithm.max_staleness` 0 the loop is synchronous (sample, train, sync) and fresh samples have
staleness 0; with k the groups of the next k steps are sampled while this one trains
(`training.rollouts.groups_in_flight` asks
for none that could become older). Replay entries are off-policy by intent, are bounded by
`replay.max_policy_age` and not counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from training.batch.samples import Sample


def staleness(sample: Sample, policy_version: int) -> int:
    """Policy versions between sampling and training; 0 for a sample without versions."""
    versions = [v for v, bit in zip(sample.policy_versions, sample.loss_mask, strict=True) if bit and v >= 0]
    return max(0, policy_version - min(versions)) if versions else 0


def staleness_metrics(samples: Iterable[Sample], policy_version: int) -> dict[str, float]:
    """async/staleness_* over the fresh samples of a batch, before anything is dropped."""
    ages: Sequence[int] = [
        staleness(sample, policy_version) for sample in samples if sample.replay_entry_id is None
    ]
    return {
        "async/staleness_mean": sum(ages) / len(ages) if ages else 0.0,
        "async/staleness_max": float(max(ages, default=0)),
    }
