"""The filters of the trajectory list, as they stand in the URL.

Unknown or broken values are dropped: a link from an older version shows more, never an error.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from django.db.models import Q, QuerySet
from django.http import QueryDict

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.outcomes import solved_at_limit, solved_by_agent
from webapp.lib.request_values import row_id, whole_range
from webapp.trajectories.models import Trajectory

ACTIVE = "active"
"""Not a status: every status that is not final."""
SORTS = {
    "newest": "-id",
    "oldest": "id",
    "reward": "-reward",
    "reward-low": "reward",
    "score": "-score",
    "score-low": "score",
    "advantage": "-advantage",
    "advantage-low": "advantage",
}
"""Name in the URL -> column; each has an index."""
DEFAULT_SORT = "newest"
SUCCESSES = {
    "ended": solved_by_agent(),
    "limit": solved_at_limit(),
    "yes": Q(score__gte=SOLVED_SCORE),
    "no": Q(score__lt=SOLVED_SCORE),
}
"""Name in the URL -> what it shows: full task scores by what ended them, and scores below."""
CHOICES = {
    "status": (ACTIVE, *(member.value for member in TrajectoryStatus)),
    "purpose": tuple(member.value for member in Purpose),
    "source": tuple(member.value for member in Source),
    "success": tuple(SUCCESSES),
    "problem": ("errored", "parse", "mistake"),
    "sort": tuple(SORTS),
}


@dataclass(frozen=True)
class TrajectoryFilter:
    """What the list is narrowed to; empty = everything."""

    status: str = ""
    family: str = ""
    purpose: str = ""
    source: str = ""
    experiment: str = ""
    """Primary key, as text."""
    step: str = ""
    """ "12", or "12-40" of a range."""
    success: str = ""
    """ended | limit | yes | no: solved, solved at a limit, either of them, or scored and below."""
    problem: str = ""
    """errored | parse | mistake: ended by an error, with unparsable completions, or lost by one turn."""
    finding: str = ""
    """Primary key, as text, of a scanner that found something."""
    search: str = ""
    """Words of the task's instruction or id, all of them."""
    sort: str = DEFAULT_SORT

    @classmethod
    def from_query(cls, query: QueryDict) -> TrajectoryFilter:
        """Read the filters of a URL."""
        values = {}
        for each in fields(cls):
            text = query.get(each.name, "").strip()
            allowed = CHOICES.get(each.name)
            if not text or (allowed and text not in allowed):
                continue
            if each.name in ("experiment", "finding") and row_id(text) is None:
                continue
            if each.name == "step" and whole_range(text) is None:
                continue
            values[each.name] = text[:60]
        return cls(**values)

    def is_narrow(self) -> bool:
        """True when anything but the order differs from the default."""
        return any(getattr(self, each.name) for each in fields(self) if each.name != "sort")

    def apply(self, rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
        """`rows` narrowed; ordering is the pager's."""
        for name in ("family", "purpose", "source"):
            if getattr(self, name):
                rows = rows.filter(**{name: getattr(self, name)})
        if self.status == ACTIVE:
            rows = rows.filter(ended_at=None)  # the same as "not final", and has a small index of its own
        elif self.status:
            rows = rows.filter(status=self.status)
        if self.experiment:
            rows = rows.filter(experiment_id=self.experiment)
        if self.step:
            rows = rows.filter(step__range=whole_range(self.step))
        if self.search:
            rows = rows.filter(task__in=TaskRecord.objects.with_words(self.search))
        return self._apply_outcome(rows)

    def _apply_outcome(self, rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
        """Solved or not, and what went wrong."""
        if self.success:
            rows = rows.filter(SUCCESSES[self.success])
        if self.problem == "errored":
            rows = rows.filter(status=TrajectoryStatus.ERRORED)
        elif self.problem == "parse":
            rows = rows.filter(num_parse_errors__gt=0)
        elif self.problem == "mistake":
            rows = rows.filter(mistake_turn__isnull=False)
        if self.finding:
            rows = rows.filter(findings__scanner=row_id(self.finding), findings__outcome="found")
        return rows
