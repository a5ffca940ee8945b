"""What a person types as a search space, checked against the config: one knob a line.

optimiser.learning_rate = 1e-6, 3e-6, 1e-5
algorithm.clip_high = 0.2 .. 0.4
optimiser.learning_rate = 1e-7 .. 1e-4 log
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from training.contracts.config.config_yaml import plain_problem, resembling
from training.contracts.config.storable_values import unusable_values
from webapp.analysis.series.chart_panels import PANELS
from webapp.experiments.knobs import Knob, knobs
from webapp.experiments.sweep_plan import (
    GREEDY,
    MAX_ARMS,
    SAMPLED,
    Axis,
    Scalar,
    SweepPlan,
)

RANGE = re.compile(r"(?P<low>\S+)\s*\.\.\s*(?P<high>\S+)(?P<log>\s+log)?")
MAX_AXES = 8
SEED = "optimiser.seed"


def parse_axes(text: str, config: ExperimentConfig) -> tuple[Axis, ...]:
    """The axes of a text; raises ConfigError (field "sweep_axes") that names the line."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MAX_AXES:
        raise _refused(f"at most {MAX_AXES} knobs, these are {len(lines)}")
    axes = tuple(_axis(line, f"line {number}: " if len(lines) > 1 else "", config) for number, line in lines)
    if len({axis.path for axis in axes}) < len(axes):
        raise _refused("a knob is named twice")
    return axes


def _refused(problem: str) -> ConfigError:
    return ConfigError({"sweep_axes": problem})


def _axis(line: str, where: str, config: ExperimentConfig) -> Axis:
    path, equals, typed = (part.strip() for part in line.partition("="))
    known = {knob.path: knob for knob in knobs()}
    if not equals or not typed:
        raise _refused(f"{where}use section.setting = 1e-4, 1e-3 or 1e-5 .. 1e-3 log")
    if path not in known:
        raise _refused(f"{where}there is no setting {path}{resembling(path, known)}")
    if path == SEED:
        raise _refused(f"{where}seeds are no axis; set the number of seeds")
    if known[path].kind == "list":
        raise _refused(f"{where}{path} is a list, which cannot be searched over")
    if found := RANGE.fullmatch(typed):
        return _range(known[path], found, where, config)
    values = tuple(_value_of(config, path, part.strip(), where) for part in typed.split(",") if part.strip())
    if not values:
        raise _refused(f"{where}{path} names no value")
    if len(set(values)) < len(values):
        raise _refused(f"{where}{path} names a value twice")
    return Axis(path=path, values=values)


def _range(knob: Knob, found: re.Match[str], where: str, config: ExperimentConfig) -> Axis:
    if knob.kind not in ("whole", "decimal"):
        raise _refused(f"{where}{knob.path} is no number, so list its values")
    low, high = (float(_value_of(config, knob.path, found[end], where)) for end in ("low", "high"))
    is_log = bool(found["log"])
    if low >= high:
        raise _refused(f"{where}{low:g} is not below {high:g}")
    if is_log and low <= 0:
        raise _refused(f"{where}a log range begins above 0")
    return Axis(path=knob.path, low=low, high=high, log=is_log, whole=knob.kind == "whole")


def _value_of(config: ExperimentConfig, path: str, typed: str, where: str) -> Scalar:
    """`typed` as the knob's own section reads it; combinations across sections are judged later."""
    section, _, name = path.rpartition(".")
    model: Any = config
    for part in section.split("."):
        model = getattr(model, part)
    try:
        read = type(model).model_validate({**model.model_dump(mode="json"), name: typed})
    except ValidationError as error:
        problem = plain_problem(error.errors()[0])
        raise _refused(f"{where}{path} = {typed}: {problem}") from error
    value = read.model_dump(mode="json")[name]
    if problems := list(unusable_values(value)):
        raise _refused(f"{where}{path} = {typed}: {problems[0][1]}")
    return value


def changed_values(config: ExperimentConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The config's plain values with some knobs replaced."""
    values = config.model_dump(mode="json")
    for path, value in changes.items():
        *sections, name = path.split(".")
        target = values
        for section in sections:
            target = target[section]
        target[name] = value
    return values


def config_of_arm(config: ExperimentConfig, values: Mapping[str, Any], seed: int) -> ExperimentConfig:
    """What one seed of an arm runs; raises ConfigError for a combination that cannot run."""
    return parse_config(changed_values(config, {**values, SEED: config.optimiser.seed + seed}))


def plan_problems(plan: SweepPlan, config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """(field of the form, message) of everything in a plan that cannot be run."""
    if plan.search == "grid" and plan.grid_size is None:
        yield "sweep_search", "a grid needs listed values; for a range choose random or tpe"
    elif plan.search != "grid" and not plan.axes:
        yield "sweep_search", "without a knob to search over only grid makes sense: one arm with all seeds"
    elif plan.search != "grid" and not plan.num_arms:
        yield "sweep_arms", f"say how many arms {plan.search} may try"
    elif plan.total_arms > MAX_ARMS:
        yield "sweep_axes", f"{plan.total_arms} combinations; at most {MAX_ARMS}, so set the number of arms"
    elif plan.total_arms * plan.num_seeds < 2:
        yield "sweep_seeds", "one arm with one seed is a single experiment: add values or seeds"
    yield from _metric_problems(plan, config)
    if plan.search == "grid" and plan.grid_size and plan.grid_size <= MAX_ARMS:
        yield from _combination_problems(plan, config)


def _metric_problems(plan: SweepPlan, config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    if plan.metric in (GREEDY, SAMPLED):
        evaluation = config.evaluation
        passes = [one.temperature == 0 for one in config.evaluation_passes]
        if not evaluation.num_tasks or not (evaluation.after or evaluation.every):
            yield (
                "sweep_metric",
                f"{plan.metric} is never measured: see evaluation.num_tasks and evaluation.after",
            )
        elif (plan.metric == GREEDY) not in passes:
            yield "sweep_metric", f"{plan.metric} is never measured: see evaluation.greedy and .temperature"
    elif not any(
        plan.metric.startswith(name) if name.endswith("/") else plan.metric == name
        for panel in PANELS
        for name in panel.names
    ):
        yield "sweep_metric", f"no series is called {plan.metric}"


def _combination_problems(plan: SweepPlan, config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """The first combination of a grid that the config refuses."""
    paths = [axis.path for axis in plan.axes]
    for values in itertools.product(*(axis.values for axis in plan.axes)):
        try:
            config_of_arm(config, dict(zip(paths, values, strict=True)), 0)
        except ConfigError as refused:
            words = ", ".join(f"{path} = {value}" for path, value in zip(paths, values, strict=True))
            yield "sweep_axes", f"{words} cannot run: {refused}"
            return
