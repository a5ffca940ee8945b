"""A config as the texts of its knobs, by dotted name, and what differs between two of them."""

from collections.abc import Mapping
from typing import Any

from training.contracts.config import ExperimentConfig, Preset
from webapp.experiments.knobs import Knob, as_text, knobs


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
        text = values.get(knob.path, knob.default)
        text = text.replace("\r\n", "\n") if knob.kind == "words" else text.strip()
        value = [part.strip() for part in text.split(",") if part.strip()] if knob.kind == "list" else text
        section = found
        for name in knob.path.split(".")[:-1]:
            section = section.setdefault(name, {})
        section[knob.name] = value
    return found


def baseline_of(preset: Preset | None) -> dict[str, str]:
    """What changes are marked against: the preset or, without one, the defaults."""
    return flatten(preset.config if preset else ExperimentConfig())


def changed_knobs(config: ExperimentConfig, baseline: Mapping[str, str]) -> list[tuple[Knob, str, str]]:
    """(knob, baseline's text, config's text) of every difference, in form order."""
    values = flatten(config)
    return [
        (knob, baseline[knob.path], values[knob.path])
        for knob in knobs()
        if values[knob.path] != baseline.get(knob.path)
    ]
