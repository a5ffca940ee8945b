"""Configs that perhaps another version of Deskhand stored, read as far as this one knows them."""

from typing import Any, TypeVar, cast

import yaml
from pydantic import ValidationError

from training.contracts.config import ConfigError, ExperimentConfig, Section, parse_config, to_yaml

S = TypeVar("S", bound=Section)


def read_stored(model: type[S], values: Any) -> S:
    """The section that `values` hold; the default stands for every value that this version cannot read."""
    try:
        return model.model_validate(values)
    except ValidationError:
        stored = values if isinstance(values, dict) else {}
        known = {
            name: _read_field(model, name, stored[name]) for name in model.model_fields.keys() & stored.keys()
        }
        # Not validated again: a combination that is refused today was run as it is.
        return cast(S, model.model_construct(**known))


def _read_field(model: type[Section], name: str, value: Any) -> Any:
    field = model.model_fields[name]
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
        return read_stored(field.annotation, value)
    try:
        return getattr(model.model_validate({name: value}), name)
    except ValidationError:
        return field.default


def problems_of(values: Any) -> dict[str, str]:
    """Dotted name -> why this version refuses a stored config; empty when it can be run as it is."""
    try:
        parse_config(values)
    except ConfigError as refused:
        return refused.problems
    return {}


def annotated_yaml(settings: ExperimentConfig, stored: Any, problems: dict[str, str]) -> str:
    """The config as YAML, below comments with every stored value that it does not hold."""
    if not problems:
        return to_yaml(settings)
    lines = ["# Stored by another version of Deskhand. This one cannot use:"]
    for path, reason in problems.items():
        value = yaml.safe_dump(_value_at(stored, path), default_flow_style=True, width=10_000).splitlines()[0]
        lines.append(f"#   {path} = {value}   ({reason})")
    return "\n".join([*lines, to_yaml(settings)])


def _value_at(stored: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(stored, dict):
            return stored
        stored = stored.get(name)
    return stored
