"""The parts of a step's updates."""

from __future__ import annotations

from itertools import groupby

import pytest

from training.batch.samples import Sample
from training.update.learner import split_by_group


def samples(sizes: list[int]) -> list[Sample]:
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    return [
        Sample(
            trajectory_id=number,
            group_id=group,
            token_ids=(),
            loss_mask=(),
            behaviour_logprobs=(),
            policy_versions=(),
        )
        for number, group in enumerate(groups)
    ]


@pytest.mark.parametrize(
    ("sizes", "parts", "groups_of"),
    [
        ([2, 2, 2, 2], 2, [[0, 1], [2, 3]]),
        ([3, 1, 2], 2, [[0], [1, 2]]),
        ([2, 2], 4, [[0], [1]]),  # flat groups have left: fewer updates
        ([2, 2, 2], 1, [[0, 1, 2]]),
        ([], 2, []),
    ],
)
def test_groups_stay_together_in_their_order(
    sizes: list[int], parts: int, groups_of: list[list[int]]
) -> None:
    everything = samples(sizes)
    found = split_by_group(everything, parts)
    assert [[key for key, _ in groupby(part, lambda s: s.group_id)] for part in found] == groups_of
    assert [sample for part in found for sample in part] == everything
