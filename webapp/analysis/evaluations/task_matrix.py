"""Tasks against evaluations: how often each task was solved, and what changed between two of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from django.utils.safestring import SafeString, mark_safe

from training.statistics.paired_statistics import Outcome
from webapp.analysis.evaluations.success_pairs import SuccessPair, TaskOutcomes, at_limit, pairs_of
from webapp.experiments.models import Evaluation, Experiment, TaskRecord
from webapp.experiments.queries.evaluations import all_evaluations, is_on_demand

MAX_COLUMNS = 20


class Kind(StrEnum):
    """Which success decides whether a task changed."""

    GREEDY = "greedy"
    SAMPLED = "sampled"


class Shown(StrEnum):
    """Filters of the rows."""

    ALL = ""
    REGRESSED = "regressed"
    FIXED = "fixed"
    FLAKY = "flaky"
    FAILING = "failing"
    AT_LIMIT = "at-limit"


SHOWN_LABELS = {
    Shown.ALL: "All tasks",
    Shown.REGRESSED: "Regressed",
    Shown.FIXED: "Fixed",
    Shown.FLAKY: "Flaky",
    Shown.FAILING: "Always failing",
    Shown.AT_LIMIT: "Solved at a limit",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One point of an experiment: sampled and greedy."""

    pair: SuccessPair
    title: str

    def of(self, kind: Kind) -> int | None:
        """Id of its evaluation of this kind; None when it has none."""
        found = self.pair.greedy if kind is Kind.GREEDY else self.pair.sampled
        return found.pk if found else None

    @property
    def key(self) -> int:
        """What names it in the page's address."""
        return self.pair.either.pk


def columns_of(experiments: list[Experiment]) -> list[Column]:
    """Of one experiment every point (the first and the newest of too many), of several the newest of each."""
    if len(experiments) == 1:
        (experiment,) = experiments
        pairs = pairs_of(all_evaluations(experiment))
        if len(pairs) > MAX_COLUMNS:
            pairs = [pairs[0], *pairs[1 - MAX_COLUMNS :]]
        return [Column(pair, _title(pair, experiment)) for pair in pairs]
    newest: dict[int, SuccessPair] = {}
    for pair in pairs_of(Evaluation.objects.filter(experiment__in=experiments).order_by("id")):
        newest[pair.either.experiment_id] = pair
    return [Column(newest[one.pk], f"#{one.pk} {one.name}") for one in experiments if one.pk in newest]


def _title(pair: SuccessPair, experiment: Experiment) -> str:
    found = pair.either
    if found.checkpoint:
        by = f", #{found.experiment_id}" if is_on_demand(found, experiment) else ""
        return f"Step {found.checkpoint.step}{by}"
    words = {"before": "Before", "after": "After", "sft": f"SFT {found.step}"}
    return words.get(found.name, f"Step {found.step}")


@dataclass(slots=True)
class Cell:
    """How one task went at one point."""

    sampled: Outcome | None
    greedy: Outcome | None
    evaluation: int
    """What a click opens."""

    @property
    def tone(self) -> str:
        """How often it was solved of all samples, as a CSS class: m0 never, m1, m2, m3 always."""
        known = [one for one in (self.sampled, self.greedy) if one]
        won, total = sum(one[0] for one in known), sum(one[1] for one in known)
        return "m0" if not won else "m3" if won == total else "m2" if 2 * won > total else "m1"

    @property
    def text(self) -> str:
        """Sampled: a mark for one sample, else k/n."""
        if self.sampled is None:
            return "·"
        won, total = self.sampled[0], self.sampled[1]
        return mark(self.sampled) if total == 1 else f"{won}/{total}{'~' if at_limit(self.sampled) else ''}"

    def html(self, baseline: int, task: int) -> str:
        """Sampled, then greedy in bold; a link to the trajectories. Holds numbers and marks only."""
        words = f"{self.text}<b>{mark(self.greedy) if self.greedy else '·'}</b>"
        if not task:
            return f'<td class="{self.tone}">{words}</td>'
        return f'<td class="{self.tone}"><a href="c/{baseline}/{self.evaluation}/{task}/">{words}</a></td>'


def mark(outcome: Outcome) -> str:
    return "✓" if outcome[0] == outcome[1] else "~" if at_limit(outcome) else "✗"


@dataclass(slots=True)
class TaskRow:
    """One task over all columns."""

    name: str
    task: TaskRecord | None
    """None when the task was deleted or belongs to another set."""
    change: int
    """From the baseline to the compared column: -1 regressed, 0, 1 fixed."""
    is_flaky: bool
    is_failing: bool
    is_at_limit: bool
    """In the compared column."""

    @property
    def family(self) -> str:
        return self.task.family if self.task else ""

    def fits(self, shown: Shown) -> bool:
        return {
            Shown.ALL: True,
            Shown.REGRESSED: self.change < 0,
            Shown.FIXED: self.change > 0,
            Shown.FLAKY: self.is_flaky,
            Shown.FAILING: self.is_failing,
            Shown.AT_LIMIT: self.is_at_limit,
        }[shown]


@dataclass(slots=True, kw_only=True)
class TaskMatrix:
    """Rows with what decides their order and the filters."""

    columns: list[Column]
    outcomes: TaskOutcomes
    baseline: int
    """Positions of the two columns that are compared."""
    compared: int
    kind: Kind
    tables: dict[Kind, list[dict[str, Outcome]]] = field(default_factory=dict)

    @property
    def baseline_evaluation(self) -> int:
        """What each cell is shown beside."""
        column = self.columns[self.baseline]
        return column.of(self.kind) or column.key

    def rows(self, tasks: Iterable[TaskRecord]) -> list[TaskRow]:
        """Every task that any column has: regressed ones first, then fixed, flaky, the others."""
        known = {task.task_id: task for task in tasks}
        found = [self._row(name, known.get(name)) for name in self.task_ids()]
        return sorted(found, key=lambda row: (row.change or 2, not row.is_flaky, row.family, row.name))

    def task_ids(self) -> list[str]:
        """Of all columns, each once."""
        ids = (self._ids_of(column) for column in self.columns)
        return list(dict.fromkeys(name for some in ids for name in some))

    def _ids_of(self, column: Column) -> Iterable[str]:
        for one in column.pair.both:
            yield from self.outcomes.get(one.pk, ())

    def _row(self, name: str, task: TaskRecord | None) -> TaskRow:
        newest = self._outcome(self.columns[self.compared].of(self.kind), name)
        return TaskRow(
            name,
            task,
            self._change(name),
            is_flaky=self._is_flaky(name),
            is_failing=self._is_failing(name),
            is_at_limit=newest is not None and at_limit(newest) > 0,
        )

    def cells(self, row: TaskRow) -> SafeString:
        """A `td` per column, empty where the task was not evaluated: as a template 800 would take 60 ms."""
        base, task = self.baseline_evaluation, row.task.pk if row.task else 0
        found = (self._cell(column, row.name) for column in self.columns)
        return mark_safe("".join(cell.html(base, task) if cell else "<td></td>" for cell in found))

    def _cell(self, column: Column, name: str) -> Cell | None:
        sampled = self._outcome(column.of(Kind.SAMPLED), name)
        greedy = self._outcome(column.of(Kind.GREEDY), name)
        if sampled is None and greedy is None:
            return None
        opened = self.columns[self.compared] if column is self.columns[self.baseline] else column
        return Cell(sampled, greedy, opened.of(self.kind) or opened.key)

    def _outcome(self, evaluation: int | None, name: str) -> Outcome | None:
        return self.outcomes.get(evaluation, {}).get(name) if evaluation is not None else None

    def _change(self, name: str) -> int:
        before, after = (
            self._outcome(self.columns[place].of(self.kind), name) for place in (self.baseline, self.compared)
        )
        if before is None or after is None:
            return 0
        rise = after[0] * before[1] - before[0] * after[1]
        return (rise > 0) - (rise < 0)

    def _is_failing(self, name: str) -> bool:
        return not any(name in table and table[name][0] for kind in Kind for table in self._tables(kind))

    def _tables(self, kind: Kind) -> list[dict[str, Outcome]]:
        """Results of the columns that have some."""
        if kind not in self.tables:
            found = [self.outcomes.get(column.of(kind) or 0, {}) for column in self.columns]
            self.tables[kind] = [table for table in found if table]
        return self.tables[kind]

    def _is_flaky(self, name: str) -> bool:
        """Solved in some samples of a point only, or solved, failed and solved again (or the reverse)."""
        found = [table[name] for table in self._tables(self.kind) if name in table]
        if any(0 < one[0] < one[1] for one in found):
            return True
        solved = [one[0] > 0 for one in found]
        return sum(mine != theirs for mine, theirs in zip(solved, solved[1:], strict=False)) > 1
