"""The knobs of ExperimentConfig as the launch form shows them: labels, kinds, bounds, groups."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training.contracts.config import PROVIDERS, ExperimentConfig

ESSENTIALS = {
    "tasks.task_set": "",
    "tasks.families": "",
    "model.path": "Model",
    "algorithm.num_steps": "",
    "optimiser.learning_rate": "",
    "algorithm.groups_per_step": "",
    "algorithm.group_size": "",
    "optimiser.seed": "",
    "evaluation.num_tasks": "Held-out tasks",
    "rewards.preset": "Reward",
    "desktops.num_desktops": "Desktops",
}
"""The settings that most people change, and what they are called where their section does not say it."""
TITLES = {
    "sft": "SFT",
    "rewards": "Reward",
    "optimiser": "Optimiser",
    "parallel": "Layout (FSDP2)",
    "lora": "LoRA",
} | {name: info.title for name, info in PROVIDERS.items()}
ACRONYMS = {
    "kl": "KL",
    "sft": "SFT",
    "url": "URL",
    "urls": "URLs",
    "ca": "CA",
    "os": "OS",
    "vm": "VM",
    "vcpus": "Processors",
}
LONG = 1000
"""Characters that a text may have from which on it gets several lines."""


ESSENTIAL = "essentials"


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
    kind: Literal["switch", "whole", "decimal", "choice", "list", "text", "words", "structure"]
    """words = text of several lines; structure = a nested value, as JSON; people make it elsewhere."""
    choices: tuple[str, ...]
    bounds: str
    """ "2 – 128", "≥ 1", "> 0"; empty without bounds."""
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobSection:
    name: str
    title: str
    help: str
    knobs: tuple[Knob, ...]


@cache
def sections() -> tuple[KnobSection, ...]:
    """The whole form, in the order of the config's fields."""
    return tuple(_section(name, info) for name, info in ExperimentConfig.model_fields.items())


@cache
def layers() -> tuple[KnobSection, ...]:
    """The same as people meet it: what most of them change first, then each section's other knobs."""
    found = {knob.path: knob for knob in knobs()}
    first = tuple(replace(found[path], label=name or found[path].label) for path, name in ESSENTIALS.items())
    essentials = KnobSection(
        name=ESSENTIAL,
        title="Essentials",
        help="What most people change. The rest is below, or by search.",
        knobs=first,
    )
    rest = (replace(one, knobs=tuple(k for k in one.knobs if k.path not in ESSENTIALS)) for one in sections())
    return (essentials, *(one for one in rest if one.knobs))


def knobs() -> Iterator[Knob]:
    for section in sections():
        yield from section.knobs


def _section(name: str, info: FieldInfo) -> KnobSection:
    model = _inner(info)
    assert model is not None, f"{name} is no section"
    return KnobSection(
        name=name,
        title=TITLES.get(name, name.capitalize()),
        help=(model.__doc__ or "").strip(),
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
    if kind == "text" and any(getattr(rule, "max_length", 0) >= LONG for rule in info.metadata):
        kind = "words"
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
    if isinstance(annotation, UnionType):  # an empty input is None
        (annotation,) = (kind for kind in get_args(annotation) if kind is not NoneType)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "structure", ()
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
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return ", ".join(as_text(item) for item in value)
    return "" if value is None else str(value)
