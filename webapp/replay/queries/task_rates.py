"""How tasks go now: the share that policies solved lately, read for all tasks at once."""

from collections import defaultdict
from dataclasses import dataclass

from training.contracts.outcome import Outcome, SuccessRule, outcome_of
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.trajectories.models import Trajectory

NUM_READ = 5000
"""Newest scored trajectories of policies that are looked at."""


@dataclass(slots=True)
class Rate:
    """Tries of one task, and how many solved it."""

    num: int = 0
    num_solved: int = 0
    num_at_limit: int = 0
    """Of the others, those that reached the state and went on until a limit."""

    @property
    def share(self) -> float | None:
        return self.num_solved / self.num if self.num else None

    def share_by(self, rule: SuccessRule) -> float:
        """Share of the tries that `rule` counts as successes; 0 without tries."""
        wins = self.num_solved + (self.num_at_limit if rule is SuccessRule.STATE else 0)
        return wins / self.num if self.num else 0.0


def recent_rates(team_id: int, experiment_id: int | None = None) -> dict[int, Rate]:
    """Task -> its tries among the newest ones, of one experiment or of all. One query."""
    rows = Trajectory.objects.filter(
        team_id=team_id,
        source=Source.POLICY,
        purpose__in=(Purpose.TRAIN, Purpose.EVALUATION),
        score__isnull=False,
    )
    if experiment_id is not None:
        rows = rows.filter(experiment_id=experiment_id)
    rates: dict[int, Rate] = defaultdict(Rate)
    for task_id, status, score in rows.order_by("-id").values_list("task_id", "status", "score")[:NUM_READ]:
        rates[task_id].num += 1
        outcome = outcome_of(TrajectoryStatus(status), score)
        rates[task_id].num_solved += outcome is Outcome.SOLVED
        rates[task_id].num_at_limit += outcome is Outcome.SOLVED_AT_LIMIT
    return dict(rates)
