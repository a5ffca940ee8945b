"""Several experiments side by side: what differs in their configs, what came of it, their metric lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from training.contracts.eye_test import stamp_differences
from webapp.accounts.access import member
from webapp.analysis.costs.cost_rows import cost_rows
from webapp.analysis.costs.ledger import Cost, costs_of
from webapp.analysis.evaluations.success_pairs import (
    SuccessChange,
    SuccessPair,
    TaskOutcomes,
    change_between,
    task_outcomes,
)
from webapp.analysis.verdict.sentence import verdict_context
from webapp.experiment_pages import experiment_table
from webapp.experiments.knob_values import flatten
from webapp.experiments.knobs import Knob, knobs
from webapp.experiments.models import Experiment
from webapp.experiments.queries.prices import prices_of
from webapp.lib.request_values import whole_number

MAX_COMPARED = 6
"""More lines than that in one chart cannot be distinguished."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A knob whose value is not the same in all."""

    knob: Knob
    values: tuple[str, ...]
    """Text per experiment, in the page's order."""


def differences(experiments: list[Experiment]) -> list[Difference]:
    """Knobs in form order; empty when all configs are the same."""
    flat = [flatten(experiment.settings) for experiment in experiments]
    found = []
    for knob in knobs():
        values = tuple(config[knob.path] for config in flat)
        if len(set(values)) > 1:
            found.append(Difference(knob, values))
    return found


def changes_against_first(latest: list[SuccessPair], outcomes: TaskOutcomes) -> list[SuccessChange | None]:
    """What each has fixed and broken, task by task; None for the first."""
    return [change_between(latest[0], pair, outcomes) if place else None for place, pair in enumerate(latest)]


def unlike(experiments: list[Experiment], latest: list[SuccessPair], outcomes: TaskOutcomes) -> Iterator[str]:
    """Why their success must not be compared, in sentences."""
    temperatures = {pair.sampled.temperature for pair in latest if pair.sampled}
    if len(temperatures) > 1:
        words = ", ".join(sorted("unknown" if one is None else f"{one:g}" for one in temperatures))
        yield f"Sampled success was measured at different temperatures ({words}): compare the greedy one."
    sets = {experiment.settings.tasks.task_set for experiment in experiments}
    if len(sets) > 1:
        yield f"They were evaluated on different task sets: {', '.join(sorted(sets))}."
    revisions = {each.settings.tasks.revision for each in experiments if each.settings.tasks.revision}
    if len(sets) == 1 and len(revisions) > 1:
        there = ", ".join(map(str, sorted(revisions)))
        yield f"They keep to different revisions of the task set: {there}."
    for kind in ("sampled", "greedy"):
        measured = [one for pair in latest if (one := getattr(pair, kind))]
        for other in measured[1:]:
            if found := stamp_differences(measured[0].eye_test, other.eye_test):
                numbers = f"#{measured[0].experiment_id} and #{other.experiment_id}"
                yield f"{kind.capitalize()} success of {numbers} was measured otherwise: {', '.join(found)}."
    tasks = [set(outcomes[one.pk]) for pair in latest for one in pair.both if one.pk in outcomes]
    if tasks and (common := set.intersection(*tasks)) != set.union(*tasks):
        yield (
            f"They were not evaluated on the same tasks: {len(common)} are common to all. "
            "Shares and intervals are of all tasks of each, tests only of tasks in common."
        )


def _cost_lines(costs: list[Cost]) -> list[tuple[str, list[str | None]]]:
    """(quantity, text per experiment) of everything in all."""
    tables = [cost_rows(cost) for cost in costs]
    return [(rows[0].label, [row.values[0] for row in rows]) for rows in zip(*tables, strict=True)]


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """`?id=3&id=5`: at most MAX_COMPARED of the team's experiments, in the order of the URL."""
    team = member(request).team
    asked = list(dict.fromkeys(whole_number(text, "id") for text in request.GET.getlist("id")))
    found = Experiment.objects.filter(team=team, pk__in=asked[:MAX_COMPARED]).select_related("owner")
    by_id = found.in_bulk()
    experiments = [by_id[pk] for pk in asked[:MAX_COMPARED] if pk in by_id]
    rows = experiment_table.list_rows(experiments)
    latest = [row.last or SuccessPair() for row in rows]
    outcomes = task_outcomes(one for pair in latest for one in pair.both)
    costs = costs_of(prices_of(team), [experiment.pk for experiment in experiments])
    ctx: dict[str, Any] = {
        "costs": _cost_lines([costs[experiment.pk] for experiment in experiments]),
        "rows": rows,
        "verdicts": [verdict_context(experiment) for experiment in experiments],
        "intervals": [
            ("Sampled", [pair.sampled for pair in latest]),
            ("Greedy", [pair.greedy for pair in latest]),
        ],
        "against": changes_against_first(latest, outcomes),
        "warnings": list(unlike(experiments, latest, outcomes)),
        "differences": differences(experiments) if len(experiments) > 1 else [],
        "num_missing": len(asked) - len(experiments),
        "max_compared": MAX_COMPARED,
        "runs": [
            {
                "id": experiment.pk,
                "name": f"#{experiment.pk} {experiment.name}",
                "url": reverse("experiment-metrics", args=[experiment.pk]),
            }
            for experiment in experiments
        ],
    }
    return render(request, "experiments/compare.html", ctx)
