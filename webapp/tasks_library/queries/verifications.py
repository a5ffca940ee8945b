"""What oracle and do-nothing runs say of a task."""

from dataclasses import dataclass

from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Trajectory

NEWEST = 50
"""Runs of each kind that are looked at."""
KINDS = ((Source.ORACLE, "Oracle", 1.0), (Source.SCRIPTED, "Doing nothing", 0.0))


@dataclass(frozen=True, slots=True)
class Runs:
    """The newest verification runs of one kind."""

    title: str
    wanted: float
    """The score that each should have."""
    last: Trajectory
    num: int
    """That were scored."""
    num_right: int
    num_errored: int

    @property
    def is_right(self) -> bool:
        return self.num > 0 and self.num_right == self.num and not self.num_errored


@dataclass(frozen=True, slots=True)
class Verification:
    """All of a version's runs."""

    runs: list[Runs]
    num_running: int

    @property
    def flakes(self) -> Runs | None:
        """The oracle's runs, when some score 1 and others do not."""
        return next((one for one in self.runs if one.wanted and 0 < one.num_right < one.num), None)


def verification_of(task: TaskRecord, team_id: int) -> Verification:
    """Of the team's runs; one query."""
    mine = Trajectory.objects.filter(team_id=team_id, task=task, purpose=Purpose.VERIFICATION)
    newest = list(mine.order_by("-pk")[: 2 * NEWEST])
    ended = [row for row in newest if row.is_final]
    found = []
    for source, title, wanted in KINDS:
        rows = [row for row in ended if row.source == source][:NEWEST]
        scores = [row.score for row in rows if row.score is not None]
        if rows:
            num_errored = sum(row.status == "errored" for row in rows)
            found.append(Runs(title, wanted, rows[0], len(scores), scores.count(wanted), num_errored))
    return Verification(found, len(newest) - len(ended))
