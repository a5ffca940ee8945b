"""The form of a new scanner: fields by kind, and the definition that was typed."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from training.contracts.types import ActionKind
from webapp.lib.request_values import BadValue, decimal_number, whole_number
from webapp.scanners.definition_schemas import ANY, Definition
from webapp.scanners.shipped_rules import RULES

KINDS = {
    "text": "Text: a regular expression",
    "actions": "A sequence of actions",
    "loop": "Repeated actions",
    "still": "A screen that stands still",
    "rule": "A rule of Deskhand",
    "model": "A question to a language model",
}
PLACES = ("said", "typed", "errors", "screen text")
FIELDS: dict[str, tuple[str, ...]] = {
    "text": ("pattern", "where", "min_turns"),
    "actions": ("steps", "times"),
    "loop": ("longest", "times"),
    "still": ("turns",),
    "rule": ("rule",),
    "model": ("question", "url", "model", "secret", "screens", "max_tokens", "price_in", "price_out"),
}
WHOLE = ("min_turns", "times", "longest", "turns", "screens", "max_tokens")
DECIMAL = ("price_in", "price_out")


def choices() -> dict[str, Any]:
    """What the form's lists offer."""
    return {
        "kinds": KINDS,
        "places": PLACES,
        "rules": {name: rule.title for name, rule in RULES.items()},
        "action_kinds": [*ActionKind, ANY],
    }


def typed_definition(values: QueryDict) -> dict[str, Any]:
    """The fields of the chosen kind; empty ones keep their defaults. Raises BadValue."""
    kind = values.get("kind", "")
    if kind not in FIELDS:
        raise BadValue("kind", "choose one of the list")
    found: dict[str, Any] = {"kind": kind}
    for name in FIELDS[kind]:
        text = values.get(f"{kind}-{name}", "").strip()
        if not text:
            continue
        if name in WHOLE:
            found[name] = whole_number(text, name)
        elif name in DECIMAL:
            found[name] = decimal_number(text, name)
        else:
            found[name] = text.replace(",", " ").split() if name == "steps" else text
    return found


def form_values(definition: Definition) -> dict[str, Any]:
    """Name of the field -> what stands in it, to start from another scanner."""
    values = definition.model_dump(mode="json")
    if "steps" in values:
        values["steps"] = ", ".join(values["steps"])
    return {f"{definition.kind}_{name}": value for name, value in values.items()} | {"kind": definition.kind}


def typed_values(values: QueryDict) -> dict[str, Any]:
    """The same of what was typed and refused."""
    return {name.replace("-", "_"): values.get(name, "") for name in values}


def definition_rows(definition: Definition) -> list[tuple[str, str]]:
    """(field, value) of a definition in words."""
    rows = [("Kind", KINDS[definition.kind])]
    for name, value in definition.model_dump(mode="json").items():
        if name == "kind" or value in ("", 0.0, 0):
            continue
        words = (
            ", ".join(value)
            if isinstance(value, list)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        rows.append((name.replace("_", " ").capitalize(), words))
    return rows
