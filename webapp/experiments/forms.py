"""The launch form, generated from `training.config.ExperimentConfig`.

Values stay the text that was typed until the config model has accepted them, so nothing is lost on an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, get_args, get_origin

import yaml
from django.http import QueryDict
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training.config import ConfigError, ExperimentConfig, Preset, from_yaml, parse_config, to_yaml

OPEN_SECTIONS = {"algorithm", "tasks", "desktops"}
TITLES = {
    "sft": "SFT warm-up",
    "rewards": "Reward",
    "optimiser": "Optimiser",
    "parallel": "Layout (FSDP2)",
    "lora": "LoRA",
    "qemu": "QEMU",
    "osworld": "OSWorld",
}
ACRONYMS = {
    "kl": "KL",
    "url": "URL",
    "urls": "URLs",
    "ca": "CA",
    "os": "OS",
    "vm": "VM",
    "vcpus": "Processors",
}
WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be a valid boolean, unable to interpret input": "must be true or false",
    "Input should be ": "must be ",
}
MAX_YAML_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One field of the config as the form shows it."""

    path: str
    """Dotted name, e.g. "algorithm.group_size"; also the name of the input."""
    name: str
    label: str
    group: str
    """Section within the section, e.g. "desktops.remote"; "" for the section's own knobs."""
    group_title: str
    when: str
    """What makes the group matter, any of "path=value path=value"; "" = it always does."""
    help: str
    unit: str
    kind: Literal["switch", "whole", "decimal", "choice", "list", "text"]
    choices: tuple[str, ...]
    bounds: str
    """ "2 – 128", "≥ 1", "> 0"; empty without bounds."""
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobSection:
    """One section of the config."""

    name: str
    title: str
    help: str
    is_open: bool
    knobs: tuple[Knob, ...]


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
        return {path: text for path, text in self.errors.items() if path not in self.values}


@cache
def sections() -> tuple[KnobSection, ...]:
    """The whole form, in the order of the config's fields."""
    return tuple(_section(name, info) for name, info in ExperimentConfig.model_fields.items())


def knobs() -> Iterator[Knob]:
    for section in sections():
        yield from section.knobs


def _section(name: str, info: FieldInfo) -> KnobSection:
    model = info.annotation
    assert model is not None
    return KnobSection(
        name=name,
        title=TITLES.get(name, name.capitalize()),
        help=(model.__doc__ or "").strip(),
        is_open=name in OPEN_SECTIONS,
        knobs=tuple(_knobs(name, model)),
    )


def _knobs(prefix: str, model: type[BaseModel]) -> Iterator[Knob]:
    """The knobs of a section; those of the sections within it follow, as groups."""
    own = [_knob(prefix, name, info) for name, info in model.model_fields.items() if not _inner(info)]
    yield from own
    within: list[Knob] = []
    for name, info in model.model_fields.items():
        if inner := _inner(info):
            within += [
                _knob(f"{prefix}.{name}", key, found, name) for key, found in inner.model_fields.items()
            ]
    for knob in within:
        yield replace(knob, when=_condition(knob.group.rpartition(".")[2], [*own, *within]))


def _inner(info: FieldInfo) -> type[BaseModel] | None:
    model = info.annotation
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _condition(name: str, neighbours: list[Knob]) -> str:
    """A group matters where its name is chosen: by `desktops.provider`, or as what OSWorld drives."""
    return " ".join(f"{knob.path}={name}" for knob in neighbours if name in knob.choices)


def _knob(section: str, name: str, info: FieldInfo, group: str = "") -> Knob:
    kind, choices = _kind(info.annotation)
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return Knob(
        path=f"{section}.{name}",
        name=name,
        label=_label(name),
        group=section if group else "",
        group_title=TITLES.get(group, group.capitalize()),
        when="",
        help=info.description or "",
        unit=str(extra.get("unit", "")),
        kind=kind,
        choices=choices,
        bounds=_bounds(info),
        default=as_text(info.default),
    )


def _label(name: str) -> str:
    words = name.removeprefix("num_").removesuffix("_s").removesuffix("_mb").split("_")
    label = " ".join(ACRONYMS.get(word, word) for word in words)
    return label[0].upper() + label[1:]


def _kind(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    if get_origin(annotation) is Literal:
        return "choice", tuple(str(value) for value in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return "choice", tuple(member.value for member in annotation)
    if get_origin(annotation) is tuple:
        return "list", ()
    return {bool: "switch", int: "whole", float: "decimal"}.get(annotation, "text"), ()


def _bounds(info: FieldInfo) -> str:
    found = {type(rule).__name__: rule for rule in info.metadata}
    low = _bound(found, "Ge", "ge")
    high = _bound(found, "Le", "le")
    above = _bound(found, "Gt", "gt")
    if low and high:
        return low if low == high else f"{low} – {high}"
    if above:
        return f"> {above}" + (f", ≤ {high}" if high else "")
    return f"≥ {low}" if low else f"≤ {high}" if high else ""


def _bound(rules: dict[str, Any], rule: str, attribute: str) -> str:
    return as_text(getattr(rules[rule], attribute)) if rule in rules else ""


def as_text(value: Any) -> str:
    """A config value as it stands in its input."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(as_text(item) for item in value)
    return "" if value is None else str(value)


def flatten(config: ExperimentConfig | Mapping[str, Any]) -> dict[str, str]:
    """Dotted name -> text of every knob; knobs that a raw mapping lacks get their default."""
    raw = config.model_dump(mode="json") if isinstance(config, ExperimentConfig) else config
    return {knob.path: _text_at(raw, knob) for knob in knobs()}


def _text_at(raw: Mapping[str, Any], knob: Knob) -> str:
    section: Any = raw
    for name in knob.path.split(".")[:-1]:
        section = section.get(name) if isinstance(section, Mapping) else None
    known = isinstance(section, Mapping) and knob.name in section
    return as_text(section[knob.name]) if known else knob.default


def nested(values: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What the config model reads: sections of texts, lists split at commas."""
    found: dict[str, Any] = {}
    for knob in knobs():
        text = values.get(knob.path, knob.default).strip()
        value = [part.strip() for part in text.split(",") if part.strip()] if knob.kind == "list" else text
        section = found
        for name in knob.path.split(".")[:-1]:
            section = section.setdefault(name, {})
        section[knob.name] = value
    return found


def _typed_section(name: str, section: dict[str, Any]) -> dict[str, Any]:
    """The section with numbers and switches as such where they can be read, else as they were typed."""
    kinds = {knob.path: knob.kind for knob in knobs()}
    readers = {"whole": int, "decimal": float, "switch": {"true": True, "false": False}.__getitem__}
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


def read_yaml(text: str, baseline: dict[str, str]) -> Draft:
    """The draft in the YAML text. A syntax error leaves the inputs at the baseline."""
    draft = Draft(values=dict(baseline), baseline=baseline, yaml=text, source="yaml")
    if len(text) > MAX_YAML_CHARS:
        draft.errors = {"yaml": f"longer than {MAX_YAML_CHARS} characters; this is not an experiment config"}
        return draft
    try:
        draft.config = from_yaml(text)
        draft.values = flatten(draft.config)
    except ConfigError as error:
        draft.errors = named_errors(error)
        if "yaml" not in draft.errors:
            draft.values = flatten(yaml.safe_load(text))
    return draft


def named_errors(error: ConfigError) -> dict[str, str]:
    """Knob -> message in plain words; an error inside a list belongs to the list's knob."""
    known = {knob.path for knob in knobs()}
    found: dict[str, str] = {}
    for path, message in error.problems.items():
        for technical, plain in WORDS.items():
            message = message.replace(technical, plain)
        parent = path.rpartition(".")[0]
        found[parent if path not in known and parent in known else path] = message
    return found


def baseline_of(preset: Preset | None) -> dict[str, str]:
    """What changes are marked against: the preset or, without one, the defaults."""
    return flatten(preset.config if preset else ExperimentConfig())


def changed_knobs(config: Mapping[str, Any], baseline: Mapping[str, str]) -> list[tuple[Knob, str, str]]:
    """(knob, baseline's text, config's text) of every difference, in form order."""
    values = flatten(config)
    return [
        (knob, baseline[knob.path], values[knob.path])
        for knob in knobs()
        if values[knob.path] != baseline.get(knob.path)
    ]
