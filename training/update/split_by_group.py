"""The batch of a step is cut into the parts of its updates; the trajectories of a group stay together."""

from collections.abc import Sequence

from training.batch.samples import Sample


def split_by_group(samples: Sequence[Sample], num_parts: int) -> list[list[Sample]]:
    """At most `num_parts` parts of whole groups, in the order of the batch; none is empty.

    Neighbours in the batch are of different families as a rule (`rollouts.task_order`), so are those of a
    part. Parts differ by one group at most; where fewer groups are left than parts were asked for, each is
    a part.
    """
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.group_id, []).append(sample)
    rows = list(groups.values())
    count = min(num_parts, len(rows))
    cuts = [len(rows) * part // count for part in range(count + 1)] if count else []
    return [
        [sample for row in rows[start:end] for sample in row]
        for start, end in zip(cuts, cuts[1:], strict=False)
    ]
