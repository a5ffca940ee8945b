"""The launch form's part about sweeps: what was typed, as a plan or as errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from training.contracts.config import ConfigError, ExperimentConfig
from training.contracts.plain_errors import in_plain_words
from webapp.analysis.series.chart_panels import PANELS
from webapp.experiments.sweep_plan import (
    GREEDY,
    MAX_ARMS,
    MAX_SEEDS,
    SAMPLED,
    SweepPlan,
)
from webapp.lib.request_values import BadValue, whole_number
from webapp.sweeps.search_space import parse_axes, plan_problems

FIRST_VALUES = {
    "sweep_axes": "",
    "sweep_search": "grid",
    "sweep_seeds": "1",
    "sweep_arms": "0",
    "sweep_at_once": "2",
    "sweep_metric": GREEDY,
    "sweep_direction": "maximise",
    "sweep_warmup": "5",
    "sweep_stop": "true",
}
WHOLE = {
    "sweep_seeds": ("num_seeds", 1, MAX_SEEDS),
    "sweep_arms": ("num_arms", 0, MAX_ARMS),
    "sweep_at_once": ("arms_at_once", 1, 20),
    "sweep_warmup": ("warmup_steps", 0, 1_000_000),
}
MAX_AXES_CHARS = 4000
SEARCHES = (("grid", "grid: every combination"), ("random", "random"), ("tpe", "TPE: near what was good"))
NUMBER_FIELDS = (
    ("sweep_seeds", "Seeds per arm", "optimiser.seed and the ones after it."),
    ("sweep_arms", "Arms", "Combinations tried; 0 = the whole grid."),
    ("sweep_at_once", "Arms at once", "In the queue at a time; TPE learns from those that ended."),
    ("sweep_warmup", "Steps before a stop", "No arm is stopped before this step."),
)


@dataclass(slots=True)
class SweepDraft:
    """What a person has typed of a sweep; without knobs and with one seed it is none."""

    values: dict[str, str]
    plan: SweepPlan | None = None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def is_wanted(self) -> bool:
        return bool(self.values["sweep_axes"].strip()) or self.values["sweep_seeds"] != "1"


def read_sweep(post: Mapping[str, Any], config: ExperimentConfig | None) -> SweepDraft:
    """The sweep of a sent form; a plan only when it and `config` are valid."""
    draft = SweepDraft({name: str(post.get(name, first)).strip() for name, first in FIRST_VALUES.items()})
    if not post.get("sweep_sent"):
        return draft
    draft.values["sweep_stop"] = "true" if post.get("sweep_stop") else ""
    if not draft.is_wanted:
        return draft
    typed = draft.values
    values: dict[str, Any] = {
        "search": typed["sweep_search"],
        "metric": typed["sweep_metric"],
        "direction": typed["sweep_direction"],
        "stop_hopeless": bool(typed["sweep_stop"]),
    }
    for name, (own, low, high) in WHOLE.items():
        try:
            values[own] = whole_number(typed[name] or FIRST_VALUES[name], name, low=low, high=high)
        except BadValue as error:
            draft.errors[name] = error.problem
    if config is None or draft.errors:
        return draft
    try:
        if len(typed["sweep_axes"]) > MAX_AXES_CHARS:
            raise ConfigError({"sweep_axes": f"longer than {MAX_AXES_CHARS} characters"})
        plan = SweepPlan(axes=parse_axes(typed["sweep_axes"], config), **values)
        draft.errors = dict(plan_problems(plan, config))
    except ConfigError as refused:
        draft.errors = refused.problems
    except ValidationError as refused:
        draft.errors = {f"sweep_{item['loc'][0]}": in_plain_words(item["msg"]) for item in refused.errors()}
    else:
        draft.plan = None if draft.errors else plan
    return draft


def sweep_context(draft: SweepDraft) -> dict[str, Any]:
    """What templates/experiments/parts/sweep_form.html shows; held-out success comes first."""
    series = [name for panel in PANELS for name in panel.names if not name.endswith("/")]
    return {
        "sweep": draft,
        "sweep_fields": NUMBER_FIELDS,
        "sweep_searches": SEARCHES,
        "metrics": [GREEDY, SAMPLED, *dict.fromkeys(series)],
    }
