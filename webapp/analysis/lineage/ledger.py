"""The rows of a lineage: each experiment of a family, what was changed from its parent, what moved."""

from dataclasses import dataclass

from webapp.analysis.evaluations.success_pairs import (
    SuccessPair,
    TaskOutcomes,
    pairs_of,
    task_outcomes,
)
from webapp.analysis.lineage.family_tree import (
    Edge,
    around,
    edges_of,
    family_of,
)
from webapp.analysis.lineage.metric_moves import (
    Move,
    Values,
    final_values,
    judge,
    seeds_of_each,
    series_moves,
    success_moves,
)
from webapp.experiments.knob_values import changed_knobs, flatten
from webapp.experiments.knobs import Knob
from webapp.experiments.models import Attempt, Evaluation, Experiment

MODEL_PATH = "model.path"


@dataclass(slots=True, kw_only=True)
class LineageRow:
    """An experiment, how it came from its parent, and what that did."""

    experiment: Experiment
    depth: int
    edge: Edge | None
    parent: Experiment | None
    changes: list[tuple[Knob, str, str]]
    """(knob, the parent's text, its own)"""
    moves: list[Move]
    resumes: list[int]
    """Steps at which later attempts went on, with the same config."""

    @property
    def significant(self) -> list[Move]:
        return [move for move in self.moves if move.is_significant]

    @property
    def others(self) -> list[Move]:
        return [move for move in self.moves if not move.is_significant]


@dataclass(frozen=True, slots=True)
class Lineage:
    """A family; `num_left_out` do not fit."""

    rows: list[LineageRow]
    num_left_out: int
    num_tests: int
    """Differences whose chance was judged, all together."""


def lineage_of(experiment: Experiment) -> Lineage:
    """Eight queries, whatever the size of the family."""
    family = family_of(experiment.pk, edges_of(experiment.team_id))
    shown = around(family, experiment.pk)
    found = Experiment.objects.in_bulk([node.pk for node in shown])
    flat = {pk: flatten(one.settings) for pk, one in found.items()}
    newest = _newest_pairs(found)
    outcomes = task_outcomes(one for pair in newest.values() for one in pair.both)
    values, seeds = final_values(list(found.values())), seeds_of_each(flat)
    resumes = _resumes(found)
    rows = []
    for node in shown:
        own = found[node.pk]
        parent = found.get(node.edge.parent) if node.edge else None
        row = LineageRow(
            experiment=own,
            depth=min(node.depth, 6),
            edge=node.edge,
            parent=parent,
            changes=_changes(own, flat[parent.pk], node.edge) if parent else [],
            moves=[],
            resumes=resumes.get(node.pk, []),
        )
        if parent:
            pairs = newest.get(parent.pk), newest.get(own.pk)
            row.moves = _moves(pairs, outcomes, seeds[parent.pk], seeds[own.pk], values)
        rows.append(row)
    num_tests = judge([move for row in rows for move in row.moves])
    return Lineage(rows, len(family) - len(shown), num_tests)


def _changes(own: Experiment, parent: dict[str, str], edge: Edge | None) -> list[tuple[Knob, str, str]]:
    """Without the model's path where the edge itself says that the weights are a checkpoint's."""
    changes = changed_knobs(own.settings, parent)
    is_said = edge is not None and edge.checkpoint is not None
    return [change for change in changes if not (is_said and change[0].path == MODEL_PATH)]


def _moves(
    pairs: tuple[SuccessPair | None, SuccessPair | None],
    outcomes: TaskOutcomes,
    before: list[int],
    after: list[int],
    values: Values,
) -> list[Move]:
    first, last = pairs
    moves = success_moves(first, last, outcomes) if first and last else []
    # One that repeats its parent is a seed of it: both sides would be the same experiments.
    return moves if before == after else moves + series_moves(before, after, values)


def _newest_pairs(found: dict[int, Experiment]) -> dict[int, SuccessPair]:
    newest = {}
    for pair in pairs_of(Evaluation.objects.filter(experiment__in=found).order_by("id")):
        newest[pair.either.experiment_id] = pair
    return newest


def _resumes(found: dict[int, Experiment]) -> dict[int, list[int]]:
    rows = Attempt.objects.filter(experiment__in=found, resumed_step__isnull=False).order_by("number")
    steps: dict[int, list[int]] = {}
    for pk, step in rows.values_list("experiment_id", "resumed_step"):
        steps.setdefault(pk, []).append(step or 0)
    return steps
