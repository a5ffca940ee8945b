"""The page of tasks against evaluations."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from training.contracts.outcome import SuccessRule
from webapp.analysis.evaluations.success_pairs import (
    SuccessChange,
    TaskOutcomes,
    change_between,
    common_rule,
    task_outcomes,
)
from webapp.analysis.evaluations.task_matrix import (
    SHOWN_LABELS,
    Column,
    Kind,
    Shown,
    TaskMatrix,
    TaskRow,
    columns_of,
)
from webapp.experiments.access import chosen_experiments
from webapp.experiments.models import Experiment, TaskRecord

ROWS_PER_PAGE = 40
RULES = (
    (SuccessRule.ENDED, "and ended by the agent"),
    (SuccessRule.STATE, "also at a limit (OSWorld's rule)"),
)


@require_safe
def evaluation_matrix(request: HttpRequest) -> HttpResponse:
    """`?id=3`: all evaluations of an experiment. `?id=3&id=5`: the newest one of each; with `open=first` the
    first task whose result changed is shown at once, side by side."""
    experiments = chosen_experiments(request)
    columns = columns_of(experiments)
    ctx: dict[str, Any] = {"experiments": experiments, "columns": columns}
    if columns:
        ctx |= _matrix_context(request, experiments, columns)
        if request.GET.get("open") == "first" and (found := _first_change(ctx["matrix"], ctx["rows"])):
            return redirect("task-side-by-side", *found)
    return render(request, "experiments/evaluation_matrix.html", ctx)


def _first_change(matrix: TaskMatrix, rows: list[tuple[TaskRow, SafeString]]) -> tuple[int, int, int] | None:
    """Both evaluations and the task; regressed ones come first."""
    compared = matrix.columns[matrix.compared]
    evaluations = matrix.baseline_evaluation, compared.of(matrix.kind) or compared.key
    tasks = (row.task.pk for row, _ in rows if row.change and row.task)
    return next(((*evaluations, task) for task in tasks), None)


def _matrix_context(
    request: HttpRequest, experiments: list[Experiment], columns: list[Column]
) -> dict[str, Any]:
    every = [one for column in columns for one in column.pair.both]
    wanted_rule = request.GET.get("rule", "")
    rule = SuccessRule.STATE if wanted_rule == SuccessRule.STATE else common_rule(every)
    outcomes = task_outcomes(every, rule)
    places = {str(column.key): place for place, column in enumerate(columns)}
    first = next((place for place, column in enumerate(columns) if column.title == "Before"), 0)
    baseline = places.get(request.GET.get("from", ""), first)
    compared = places.get(request.GET.get("to", ""), len(columns) - 1)
    ends = (columns[baseline], columns[compared])
    has_greedy = all(column.of(Kind.GREEDY) in outcomes for column in ends)
    wanted = request.GET.get("by", "")
    kind = Kind(wanted) if wanted in list(Kind) else Kind.GREEDY if has_greedy else Kind.SAMPLED
    matrix = TaskMatrix(columns=columns, outcomes=outcomes, baseline=baseline, compared=compared, kind=kind)
    every_row = matrix.rows(_tasks(matrix, experiments))
    chosen = {name: request.GET.get(name, "") for name in ("family", "level")}
    within = [row for row in every_row if _fits(row.task, chosen)]
    kept = {row.name for row in within}
    shown = Shown(text) if (text := request.GET.get("show", "")) in list(Shown) else Shown.ALL
    rows = [row for row in within if row.fits(shown)]
    page = Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    return {
        "matrix": matrix,
        "ends": [(column.key, column.title) for column in columns],
        "baseline": columns[baseline].key,
        "compared": columns[compared].key,
        "change": _change(columns[baseline], columns[compared], outcomes.of(kept)),
        "rule": rule,
        "rules": RULES,
        "page": page,
        "rows": [(row, matrix.cells(row)) for row in page.object_list],
        "counts": [(one, SHOWN_LABELS[one], sum(row.fits(one) for row in within)) for one in Shown],
        "shown": shown,
        "chosen": chosen,
        "families": sorted({row.family for row in every_row if row.family}),
        "levels": sorted({str(row.task.level) for row in every_row if row.task}),
    }


def _tasks(matrix: TaskMatrix, experiments: list[Experiment]) -> list[TaskRecord]:
    """Those of the sets that the experiments name; others, of recorded runs, by the groups that ran them."""
    names = matrix.task_ids()
    # The newest version comes last and is shown.
    rows = TaskRecord.objects.order_by("version").only("task_id", "instruction", "family", "level")
    sets = {experiment.settings.tasks.task_set for experiment in experiments}
    found = list(rows.filter(task_set__name__in=sets, task_id__in=names))
    if unknown := set(names) - {task.task_id for task in found}:
        tables = matrix.outcomes.values()
        groups = {name: table[name][2] for table in tables for name in unknown & table.keys()}
        found += rows.filter(groups__in=set(groups.values()), groups__experiment__in=experiments).distinct()
    return found


def _fits(task: TaskRecord | None, chosen: dict[str, str]) -> bool:
    family, level = chosen["family"], chosen["level"]
    if not task:
        return not family and not level
    return (not family or task.family == family) and (not level or str(task.level) == level)


def _change(before: Column, after: Column, outcomes: TaskOutcomes) -> SuccessChange | None:
    return change_between(before.pair, after.pair, outcomes) if before is not after else None
