"""The launch form, generated from `training.contracts.config.ExperimentConfig`.

Values stay the text that was typed until the config model has accepted them, so nothing is lost on an error.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml
from django.http import QueryDict

from training.contracts.config import (
    ConfigError,
    ExperimentConfig,
    parse_config,
    to_yaml,
)
from training.contracts.config import (
    read_yaml as plain_values_of,
)
from webapp.accounts.models import Team
from webapp.experiments.knob_values import flatten, nested
from webapp.experiments.knobs import knobs
from webapp.experiments.queries.reward_presets import with_saved_terms
from webapp.launch.sweep_form import FIRST_VALUES
from webapp.lib.yaml_keys import lines_of

MAX_YAML_CHARS = 100_000


@dataclass(slots=True, kw_only=True)
class Draft:
    """What a person has typed so far, and what is wrong with it."""

    values: dict[str, str]
    """Dotted name -> text of every knob."""
    baseline: dict[str, str]
    """The same of the preset, to mark changes against."""
    config: ExperimentConfig | None = None
    """Set when everything is valid."""
    errors: dict[str, str] = field(default_factory=dict)
    """Dotted name (or "name", "priority", "yaml") -> message."""
    yaml: str = ""
    source: Literal["form", "yaml"] = "form"

    def strays(self) -> dict[str, str]:
        """Errors that no input of the form shows: unknown keys of a YAML text."""
        own = (*self.values, *FIRST_VALUES, "experiment_name", "priority")
        return {path: text for path, text in self.errors.items() if path not in own}


def _typed_section(name: str, section: dict[str, Any]) -> dict[str, Any]:
    """The section with numbers and switches as such where they can be read, else as they were typed."""
    kinds = {knob.path: knob.kind for knob in knobs()}
    readers: dict[str, Callable[[Any], Any]] = {
        "whole": int,
        "decimal": float,
        "switch": {"true": True, "false": False}.__getitem__,
    }
    typed = dict(section)
    for key, value in section.items():
        if isinstance(value, dict):
            typed[key] = _typed_section(f"{name}.{key}", value)
            continue
        with suppress(ValueError, KeyError):
            typed[key] = readers.get(kinds[f"{name}.{key}"], lambda same: same)(value)
    return typed


def read_form(post: QueryDict, baseline: dict[str, str]) -> Draft:
    """The draft in the inputs; inputs that are absent keep the baseline's value."""
    values = {path: post.get(path, value) for path, value in baseline.items()}
    draft = Draft(values=values, baseline=baseline)
    try:
        draft.config = parse_config(nested(values))
        draft.yaml = to_yaml(draft.config)
    except ConfigError as error:
        draft.errors = named_errors(error)
        raw = {name: _typed_section(name, section) for name, section in nested(values).items()}
        draft.yaml = yaml.safe_dump(raw, sort_keys=False, allow_unicode=True)
    return draft


def read_yaml(text: str, baseline: dict[str, str], team: Team) -> Draft:
    """The draft in the YAML text, over the baseline, which may name a reward preset of `team`.

    A syntax error leaves the inputs at the baseline."""
    draft = Draft(values=dict(baseline), baseline=baseline, yaml=text, source="yaml")
    if len(text) > MAX_YAML_CHARS:
        draft.errors = {"yaml": f"longer than {MAX_YAML_CHARS} characters; this is not an experiment config"}
        return draft
    try:
        merged = _over(baseline, with_saved_terms(plain_values_of(text), team))
        draft.config = parse_config(merged)
        draft.values = flatten(draft.config)
    except ConfigError as error:
        draft.errors = named_errors(error)
        if "yaml" not in draft.errors:
            draft.values = flatten(_over(baseline, plain_values_of(text)))
            draft.errors = _at_their_lines(draft.errors, text)
    return draft


def _over(baseline: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    """The baseline with what the text names; a reward preset brings its own terms."""
    start = dict(baseline)
    rewards = values.get("rewards")
    if isinstance(rewards, dict) and "preset" in rewards:
        start["rewards.definition"] = ""
    merged: dict[str, Any] = _merged(nested(start), values, {knob.path for knob in knobs()})
    return merged


def _merged(base: Any, changes: Any, known: set[str], path: str = "") -> Any:
    """`changes` over `base`, section by section; a knob is taken whole."""
    if path in known or not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    inner = {
        key: _merged(base.get(key), value, known, f"{path}.{key}" if path else str(key))
        for key, value in changes.items()
    }
    return base | inner


def _at_their_lines(errors: Mapping[str, str], text: str) -> dict[str, str]:
    """The errors of a readable text with its lines."""
    lines = lines_of(text)
    return {
        path: f"line {lines[path]}: {message}" if path in lines else message
        for path, message in errors.items()
    }


def named_errors(error: ConfigError) -> dict[str, str]:
    """Knob -> message in plain words; an error inside a list or a structure belongs to its knob."""
    known = {knob.path for knob in knobs()}
    found: dict[str, str] = {}
    for path, message in error.problems.items():
        parts = path.split(".")
        parents = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        knob = next((parent for parent in parents if parent in known), path)
        within = path.removeprefix(knob).lstrip(".") if len(parts) > 3 else ""
        found.setdefault(knob, f"{within}: {message}" if within else message)
    return found
