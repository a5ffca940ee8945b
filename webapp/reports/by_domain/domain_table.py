"""Success by domain: what an evaluation's tasks came to, with the steps and temperature that they had."""

from collections import defaultdict
from dataclasses import dataclass, field

from training.contracts.outcome import Outcome, succeeded
from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.queries.evaluations import all_evaluations
from webapp.reports.by_domain.published import OSWORLD_DOMAINS
from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries.evaluation_episodes import episodes_of

FEWER_STEPS = 15
"""The smaller of the two numbers of steps that results are published with."""
MAX_COLUMNS = 8


@dataclass(slots=True)
class Tally:
    """Episodes of some tasks."""

    by_task: dict[str, list[Trajectory]] = field(default_factory=lambda: defaultdict(list))

    @property
    def num_tasks(self) -> int:
        return len(self.by_task)

    @property
    def pass_at_1(self) -> float | None:
        """Mean over tasks of the share of their episodes that solved them."""
        return self._mean([sum(map(is_solved, rows)) / len(rows) for rows in self.by_task.values()])

    @property
    def ended(self) -> float | None:
        """As `pass_at_1`, of episodes that the agent ended itself."""
        return self._mean(
            [sum(row.outcome is Outcome.SOLVED for row in rows) / len(rows) for rows in self.by_task.values()]
        )

    @property
    def pass_at_k(self) -> float | None:
        """Share of tasks that at least one episode solved."""
        return self._mean([float(any(map(is_solved, rows))) for rows in self.by_task.values()])

    @property
    def within_fewer(self) -> float | None:
        """As `pass_at_1`, of episodes that ended by `FEWER_STEPS`. Cut there, others might be solved, too."""
        return self._mean(
            [
                sum(is_solved(row) and row.num_turns <= FEWER_STEPS for row in rows) / len(rows)
                for rows in self.by_task.values()
            ]
        )

    @property
    def mean_score(self) -> float | None:
        """What OSWorld calls success: partial scores count in part."""
        return self._mean(
            [sum(row.score or 0.0 for row in rows) / len(rows) for rows in self.by_task.values()]
        )

    @staticmethod
    def _mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None


@dataclass(slots=True)
class DomainColumn:
    """One evaluation: what it was run with, and its tally by domain."""

    evaluation: Evaluation
    experiment: Experiment
    by_domain: dict[str, Tally]
    all: Tally

    turn_limits: tuple[int, ...]
    """Turns that an episode could take, each once: a task's own limit wins over the config's."""
    is_osworld: bool
    """Every task is one of OSWorld's."""

    @property
    def steps_text(self) -> str:
        """ "50 steps", or "3 to 6 steps" where tasks have limits of their own."""
        least, most = self.turn_limits[0], self.turn_limits[-1]
        return f"{most} steps" if least == most else f"{least} to {most} steps"

    @property
    def num_cells(self) -> int:
        return 4 + (self.samples > 1) + self.has_more_steps

    @property
    def samples(self) -> int:
        """Scored episodes of the task that has most: the k of pass@k."""
        return max((len(rows) for rows in self.all.by_task.values()), default=0)

    @property
    def has_more_steps(self) -> bool:
        return self.turn_limits[-1] > FEWER_STEPS


def is_solved(row: Trajectory) -> bool:
    """By OSWorld's rule: the state counts, also at a limit."""
    return succeeded(row.score)


def columns_of(experiments: list[Experiment]) -> list[DomainColumn]:
    """The newest evaluations of them; errored episodes are excluded."""
    chosen = [(one, evaluation) for one in experiments for evaluation in all_evaluations(one)][-MAX_COLUMNS:]
    return [_column(experiment, evaluation) for experiment, evaluation in chosen]


def _column(experiment: Experiment, evaluation: Evaluation) -> DomainColumn:
    by_domain: dict[str, Tally] = defaultdict(Tally)
    everything = Tally()
    limits: set[int] = set()
    of_config = evaluation.experiment.settings.desktops.max_turns
    for row in episodes_of(evaluation):
        if row.score is None:
            continue
        limits.add(row.own_max_turns or of_config)
        for tally in (by_domain[row.family or "other"], everything):
            tally.by_task[row.task.task_id].append(row)
    return DomainColumn(
        evaluation,
        evaluation.experiment,
        dict(by_domain),
        everything,
        tuple(sorted(limits)) or (of_config,),
        all(is_of_osworld(rows[0]) for rows in everything.by_task.values()),
    )


def is_of_osworld(row: Trajectory) -> bool:
    """Named as the import names OSWorld's own tasks: its domain, then its id."""
    return row.family in OSWORLD_DOMAINS and row.task.task_id.startswith(f"{row.family}.")


def rows_of(columns: list[DomainColumn]) -> list[tuple[str, list[tuple[DomainColumn, Tally]]]]:
    """(domain, each column with its tally), by name; the last row has all."""
    names = sorted({name for column in columns for name in column.by_domain})
    rows = [(name, [(one, one.by_domain.get(name, Tally())) for one in columns]) for name in names]
    return [*rows, ("All", [(one, one.all) for one in columns])] if rows else []
