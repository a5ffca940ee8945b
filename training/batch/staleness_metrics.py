"""How old the policy was that sampled what is trained on.

staleness = training policy_version - oldest policy_version among the tokens that are trained on.
With `algorithm.max_staleness` 0 the loop is synchronous (sample, train, sync) and fresh samples have
staleness 0; with k the groups of the next k steps are sampled while this one trains
(`training.rollouts.groups_in_flight` asks
for none that could become older). Replay entries are off-policy by intent, are bounded by
`replay.max_policy_age` and not counted here.
"""

from collections.abc import Iterable, Sequence

from training.batch.samples import Sample
from training.contracts.types import Trajectory


def staleness(sample: Sample, policy_version: int) -> int:
    """Policy versions between sampling and training; 0 for a sample without versions."""
    marked = zip(sample.policy_versions, sample.loss_mask, strict=True)
    return _ages((version for version, bit in marked if bit), policy_version)[1]


def trajectory_ages(trajectory: Trajectory, policy_version: int, last_turns: int = 0) -> tuple[int, int]:
    """(staleness of its newest token, of its oldest) over the last `last_turns` turns, 0 = all."""
    recorded = [turn.completion for turn in trajectory.turns[-last_turns:] if not turn.is_context]
    versions = (
        version
        for completion in recorded
        if completion is not None
        for version in completion.policy_versions or (completion.policy_version,)
    )
    return _ages(versions, policy_version)


def _ages(versions: Iterable[int], policy_version: int) -> tuple[int, int]:
    """Of the newest and the oldest; -1 stands for a token that no policy sampled."""
    known = [version for version in versions if version >= 0] or [policy_version]
    return max(0, policy_version - max(known)), max(0, policy_version - min(known))


def staleness_metrics(ages: Sequence[int]) -> dict[str, float]:
    """async/staleness_* of a batch's own samples, before anything is dropped."""
    return {
        "async/staleness_mean": sum(ages) / len(ages) if ages else 0.0,
        "async/staleness_max": float(max(ages, default=0)),
    }
