"""From plain values and YAML to a validated config, and back."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from training.contracts.config.experiment import ExperimentConfig
from training.contracts.config.storable_values import unusable_values
from training.contracts.config.strict_yaml import UnusableYaml, load_yaml
from training.contracts.plain_errors import in_plain_words

UNKNOWN = "extra_forbidden"
"""Pydantic's name for a key that no model has."""


class ConfigError(ValueError):
    """Raised when a config is refused; `problems` maps field paths to messages."""

    def __init__(self, problems: dict[str, str]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems.items()))


def parse_config(values: dict[str, Any]) -> ExperimentConfig:
    """Validated config from nested plain values; raises ConfigError naming every bad field."""
    if problems := dict(unusable_values(values)):
        raise ConfigError(problems)
    try:
        config = ExperimentConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_problems(error)) from error
    if problems := dict(unusable_values(config.model_dump())):  # numbers that came as text
        raise ConfigError(problems)
    return config


def _problems(error: ValidationError) -> dict[str, str]:
    problems: dict[str, str] = {}
    for item in error.errors():
        path = ".".join(str(part) for part in item["loc"])
        if item["loc"]:
            near = resembling(path, _names(ExperimentConfig)) if item["type"] == UNKNOWN else ""
            problems[path or '""'] = plain_problem(item) + near  # a key may be empty, too
            continue
        for part in str(item["ctx"]["error"]).split("; "):
            field, _, message = part.partition(": ")
            problems[field] = message
    return problems


def plain_problem(item: Any) -> str:
    """One of pydantic's errors, as it is said of a knob."""
    if item["type"] == UNKNOWN:
        return "unknown key; remove it or check its spelling"
    if item["type"] == "model_type":
        return "must be a section: settings by their names"
    if item["type"] in ("tuple_type", "list_type"):
        return "must be a list: [a, b], or [] for none"
    if (
        isinstance(item["input"], str | float)
        and "than" in item["type"]
        and not isfinite(float(item["input"]))
    ):
        return "must be a finite number"  # no bound explains what is wrong with "nan"
    return in_plain_words(item["msg"])


def resembling(name: str, known: Iterable[str]) -> str:
    """ "; did you mean algorithm.num_steps?" for the nearest known name; "" when none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _names(model: type[BaseModel]) -> Iterator[str]:
    """Its sections and, below each, their fields."""
    for name, field in model.model_fields.items():
        yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from (f"{name}.{inner}" for inner in _names(field.annotation))


def to_yaml(config: ExperimentConfig) -> str:
    """The whole resolved config as YAML in field order."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(text: str) -> dict[str, Any]:
    """The plain values of a YAML text; raises ConfigError (field "yaml")."""
    try:
        values = load_yaml(text)
    except UnusableYaml as error:
        raise ConfigError({"yaml": f"not valid YAML: {error}"}) from error
    if not isinstance(values, dict):
        raise ConfigError({"yaml": "the top level must be a mapping of sections"})
    return values


def from_yaml(text: str) -> ExperimentConfig:
    """Validated config from YAML; raises ConfigError (field "yaml" for a syntax error)."""
    return parse_config(read_yaml(text))


def laid_over(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with those of `changes`, section by section; unknown names stay in, for validation to tell."""
    found = dict(values)
    for name, value in changes.items():
        inner = found.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = laid_over(inner, value)
        found[name] = value
    return found
