"""How many replay entries a step may take: in all, of one family, and beside the groups."""

from collections import Counter
from collections.abc import Collection, Sequence

from training.contracts.config import ReplayConfig
from training.contracts.types import Group

ROUNDING = 1e-9
"""So that a quarter of eight is two, whatever the floats say."""


class ReplayRoom:
    """Counts what enters a step, against its limits.

    `max_share` is of what is trained on in the end, so a flat group counts only once it has an injection. One
    with an entry beside it counts, too: else nothing could enter a step of which every group failed.
    `max_family_share` and `sft_share` are of the step's trajectories, trained on or not: where a whole family
    fails, its injections have no other measure.
    """

    def __init__(
        self, groups: Sequence[Group], trained_groups: Collection[int], config: ReplayConfig
    ) -> None:
        self._config = config
        self._counted = set(trained_groups)
        self._trained = sum(len(group.scored()) for group in groups if group.group_id in self._counted)
        self._injected = 0
        self._beside = 0
        self._of_family: Counter[str] = Counter()
        self._members: Counter[str] = Counter()
        for group in groups:
            self._members[group.task.family] += len(group.scored())

    def has_room(self, group: Group) -> bool:
        """Whether `group` may have an injection."""
        family = group.task.family
        of_family = self._config.max_family_share * self._members[family] + ROUNDING
        in_all = self._config.max_share * (self._trained + self._more(group)) + ROUNDING
        return self._injected + 1 <= in_all and self._of_family[family] + 1 <= of_family

    def count(self, group: Group) -> None:
        """Of an injection into `group`."""
        self._trained += self._more(group)
        self._counted.add(group.group_id)
        self._injected += 1
        self._of_family[group.task.family] += 1

    def has_room_beside(self) -> bool:
        """Whether one more entry may be imitated beside groups that did not fail."""
        return self._beside + 1 <= self._config.sft_share * self._members.total() + ROUNDING

    def count_beside(self) -> None:
        self._beside += 1

    def _more(self, group: Group) -> int:
        """Members that are trained on with an injection, and not without."""
        return 0 if group.group_id in self._counted else len(group.scored())
