"""Several experiments side by side: what differs in their configs, what came of it, their metric lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.accounts.access import member
from webapp.experiments.launch.form import flatten
from webapp.experiments.launch.form_knobs import Knob, knobs
from webapp.experiments.models import Experiment
from webapp.experiments.page import experiment_table

MAX_COMPARED = 6
"""More lines than that in one chart cannot be told apart."""


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


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """`?id=3&id=5`: at most MAX_COMPARED of the team's experiments, in the order of the URL."""
    team = member(request).team
    asked = list(dict.fromkeys(int(text) for text in request.GET.getlist("id") if text.isdecimal()))
    found = Experiment.objects.filter(team=team, pk__in=asked[:MAX_COMPARED]).select_related("owner")
    by_id = found.in_bulk()
    experiments = [by_id[pk] for pk in asked[:MAX_COMPARED] if pk in by_id]
    ctx: dict[str, Any] = {
        "nav": "experiments",
        "rows": experiment_table.list_rows(experiments),
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
