"""The form of a new scanner: fields by kind, and the definition that was typed."""

from typing import Any, get_origin

from django.http import QueryDict

from webapp.lib.request_values import BadValue, decimal_number, whole_number
from webapp.scanners.kinds.contract import Kind
from webapp.scanners.kinds.registry import KINDS


def choices() -> dict[str, Any]:
    """What the form's lists offer."""
    offered: dict[str, Any] = {"kinds": {name: kind.title for name, kind in KINDS.items()}}
    for kind in KINDS.values():
        offered |= kind.choices()
    return offered | {"kind_templates": [f"scanners/kinds/{name}.html" for name in KINDS]}


def typed_definition(values: QueryDict) -> dict[str, Any]:
    """The fields of the chosen kind; empty ones keep their defaults. Raises BadValue."""
    kind = values.get("kind", "")
    if kind not in KINDS:
        raise BadValue("kind", "choose one of the list")
    found: dict[str, Any] = {"kind": kind}
    for name, field in KINDS[kind].model_fields.items():
        if name != "kind" and (text := values.get(f"{kind}-{name}", "").strip()):
            found[name] = _typed(name, text, field.annotation)
    return found


def _typed(name: str, text: str, kind: Any) -> Any:
    """A field's text as its type has it. Raises BadValue."""
    if kind is int:
        return whole_number(text, name)
    if kind is float:
        return decimal_number(text, name)
    return text.replace(",", " ").split() if get_origin(kind) is tuple else text


def form_values(definition: Kind) -> dict[str, Any]:
    """Name of the field -> what stands in it, to start from another scanner."""
    values = definition.model_dump(mode="json")
    if "steps" in values:
        values["steps"] = ", ".join(values["steps"])
    return {f"{definition.kind}_{name}": value for name, value in values.items()} | {"kind": definition.kind}


def typed_values(values: QueryDict) -> dict[str, Any]:
    """The same of what was typed and refused."""
    return {name.replace("-", "_"): values.get(name, "") for name in values}


def definition_rows(definition: Kind) -> list[tuple[str, str]]:
    """(field, value) of a definition in words."""
    rows = [("Kind", definition.title)]
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
