"""What the groups tab is narrowed by: purpose, step, family, how many members solved the task, injections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, QuerySet

from training.contracts.types import Purpose
from webapp.experiments.models import Experiment
from webapp.experiments.queries.outcomes import solved_by_agent
from webapp.lib.request_values import check_text, whole_range

NO_VARIANCE = "no-variance"
PURPOSES = (
    ("", "All"),
    (Purpose.TRAIN.value, "Training"),
    (NO_VARIANCE, "No variance"),
    (Purpose.EVALUATION.value, "Evaluation"),
    (Purpose.DEMONSTRATION.value, "Demonstration"),
)
"""What the tab's links show: groups of a purpose, or those of training whose rewards are all equal."""
SOLVED = ("none", "some", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """As it stands in the address; "" = any."""

    purpose: str = ""
    step: str = ""
    """ "12", or "12-40" of a range."""
    family: str = ""
    solved: str = ""
    """One of SOLVED: by how many of the scored members, as far as the agent ended them."""
    injected: str = ""
    """yes: a replay entry took part."""

    @classmethod
    def from_query(cls, query: Mapping[str, str], *, purpose: str = "") -> GroupFilter:
        """What cannot be meant is left out. Raises BadValue for a text that no column holds."""
        step, solved, family = (query.get(name, "") for name in ("step", "solved", "family"))
        check_text(family, "family")
        return cls(
            purpose=query.get("purpose", purpose),
            step="" if whole_range(step) is None else step,
            family=family,
            solved=solved if solved in SOLVED else "",
            injected=query.get("injected", ""),
        )

    @property
    def is_narrow(self) -> bool:
        """More than a purpose is chosen."""
        return bool(self.step or self.family or self.solved or self.injected)

    def address(self, **changes: Any) -> str:
        """The tab's address with the same filters but for `changes`."""
        values = {"tab": "groups", **asdict(self), **changes}
        return "?" + urlencode({name: value for name, value in values.items() if value or name == "purpose"})

    def apply(self, rows: QuerySet[Any], experiment: Experiment) -> QuerySet[Any]:
        """The groups of `experiment` that fit."""
        if self.purpose == NO_VARIANCE:
            rows = rows.without_variance().filter(purpose=Purpose.TRAIN)  # type: ignore[attr-defined]
        elif self.purpose:
            rows = rows.filter(purpose=self.purpose)
        if self.step:
            rows = rows.filter(step__range=whole_range(self.step))
        if self.family:
            rows = rows.filter(task__family=self.family)
        if self.solved:
            members = experiment.trajectories.filter(group=OuterRef("pk"))
            won = Exists(members.filter(solved_by_agent()))
            lost = Exists(members.filter(~solved_by_agent(), score__isnull=False))
            rows = rows.filter({"none": lost & ~won, "some": won & lost, "all": won & ~lost}[self.solved])
        if self.injected:
            rows = rows.filter(pk__in=experiment.groups.filter(replay_uses__isnull=False).values("pk"))
        return rows
