#!/usr/bin/env python
"""Write the typed half of the Python client, deploy/client, from the API's schema, and what it shares.

    .venv/bin/python -m scripts.write_client

One method per operation, named like it; one TypedDict per schema. An experiment's config stays a plain dict:
`config_schema` describes it. Set-up runs it; git ignores what it writes.
"""

from __future__ import annotations

import keyword
import os
import tempfile
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "deploy" / "client" / "deskhand_client"
COPIED = ROOT / "webapp" / "lib" / "chat" / "data_block.py"
"""The client stands alone, so it has the one owner's text."""
OPAQUE = "ExperimentConfig"
LONG = 72
"""A longer list of parameters has a line for each."""
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
HEAD = '"""{} Written by scripts/write_client.py: do not edit."""\n\nfrom __future__ import annotations\n\n'


def type_of(schema: dict[str, Any], prefix: str = "") -> str:
    """The Python type of a JSON schema; `prefix`: where the TypedDicts are imported."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return "dict[str, Any]" if name == OPAQUE else prefix + name
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(part, prefix) for part in schema[key]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(repr(value) for value in values)}]"
    kind = schema.get("type")
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}), prefix)}]"
    if kind == "object":
        extra = schema.get("additionalProperties")
        return f"dict[str, {type_of(extra, prefix) if isinstance(extra, dict) else 'Any'}]"
    return PLAIN.get(kind or "", "Any")


def models_text(schemas: dict[str, Any], used: set[str]) -> str:
    """The TypedDicts that operations name, directly or not, in alphabetical order."""
    # Below Python 3.12, pydantic (the MCP server) reads only the TypedDict of typing_extensions.
    parts = ["from typing import Any, Literal, NotRequired\n\nfrom typing_extensions import TypedDict\n"]
    for name in sorted(used):
        schema = schemas[name]
        doc = (schema.get("description") or name).strip().partition("\n")[0]
        if "properties" not in schema:
            parts.append(f"{name} = {type_of(schema)}\n")
            continue
        required = set(schema.get("required", ()))
        fields = {
            field: type_of(inner) if field in required else f"NotRequired[{type_of(inner)}]"
            for field, inner in schema["properties"].items()
        }
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
            lines = [f"    {field}: {kind}" for field, kind in fields.items()]
            parts.append(f'class {name}(TypedDict):\n    """{doc}"""\n\n' + "\n".join(lines) + "\n")
        else:
            inner = ", ".join(f"{field!r}: {kind!r}" for field, kind in fields.items())
            parts.append(f"{name} = TypedDict({name!r}, {{{inner}}})\n")
    return HEAD.format("What the API takes and answers.") + "\n\n".join(parts)


def closure(schemas: dict[str, Any], roots: set[str]) -> set[str]:
    """Names of everything that `roots` refer to, themselves included."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name == OPAQUE:
            continue
        found.add(name)
        waiting += references(schemas[name])
    return found


def references(schema: Any) -> set[str]:
    """Names that a schema refers to."""
    if isinstance(schema, dict):
        own = {schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(references(inner) for inner in schema.values()))
    return set().union(*(references(inner) for inner in schema)) if isinstance(schema, list) else set()


class Parameters:
    """The signature of a method, and what of it goes where."""

    def __init__(self, operation: dict[str, Any], schemas: dict[str, Any]) -> None:
        self.path: list[str] = []
        self.keywords: list[str] = []
        self.sent: dict[str, list[tuple[str, str]]] = {"query": [], "body": [], "files": [], "form": []}
        self._optional: list[str] = []
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                self.path.append(f"{parameter['name']}: {type_of(parameter['schema'], 'models.')}")
            else:
                self._add("query", parameter["name"], parameter["schema"], parameter.get("required", False))
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            schema = content["schema"]
            if "$ref" in schema:
                schema = schemas[schema["$ref"].rpartition("/")[2]]
            required = set(schema.get("required", ()))
            for name, inner in schema["properties"].items():
                is_file = inner.get("format") == "binary"
                where = "files" if is_file else "body" if kind == "application/json" else "form"
                self._add(where, name, inner, name in required)

    def _add(self, where: str, name: str, schema: dict[str, Any], is_required: bool) -> None:
        argument = f"{name}_" if keyword.iskeyword(name) else name
        kind = "BinaryIO" if where == "files" else type_of(schema, "models.")
        if is_required:
            self.keywords.append(f"{argument}: {kind}")
        else:
            kind = kind if "None" in kind.split(" | ") else f"{kind} | None"
            self._optional.append(f"{argument}: {kind} = None")
        self.sent[where].append((name, argument))

    @property
    def signature(self) -> str:
        named = [*self.keywords, *self._optional]
        parts = ["self", *self.path, *(["*", *named] if named else [])]
        on_one_line = ", ".join(parts)
        if len(on_one_line) <= LONG:
            return on_one_line
        return "".join(f"\n        {part}," for part in parts) + "\n    "

    def passed(self) -> str:
        """Keywords of the call that sends it."""
        found = []
        for where, names in self.sent.items():
            if names:
                inner = ", ".join(f"{name!r}: {argument}" for name, argument in names)
                found.append(f"{where}={{{inner}}}")
        return "".join(f", {part}" for part in found)


def method_text(verb: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """One operation as a method."""
    parameters = Parameters(operation, schemas)
    good = next((answer for status, answer in operation["responses"].items() if int(status) < 300), {})
    content = good.get("content", {})
    is_file = bool(content) and "application/json" not in content
    answer = type_of(content["application/json"]["schema"], "models.") if content and not is_file else "None"
    call, answer = ("_stream", "Iterator[bytes]") if is_file else ("_call", answer)
    doc = (operation.get("description") or operation["summary"]).strip()
    lines = textwrap.fill(" ".join(doc.split()), 96, subsequent_indent=8 * " ")
    address = f'f"{path}"' if "{" in path else f'"{path}"'
    for name in (part.partition(":")[0] for part in parameters.path):
        address = address.replace(f"{{{name}}}", f"{{_segment({name})}}")
    return (
        f"    def {operation['operationId']}({parameters.signature}) -> {answer}:\n"
        f'        """{lines}"""\n'
        f"        return self.{call}({verb.upper()!r}, {address}{parameters.passed()})\n"
    )


def client_files(schema: dict[str, Any]) -> dict[str, str]:
    """File name -> text, before formatting."""
    schemas = schema["components"]["schemas"]
    methods, roots = [], set()
    for path, operations in schema["paths"].items():
        for verb, operation in operations.items():
            good = {status: a for status, a in operation["responses"].items() if int(status) < 300}
            roots |= references([operation.get("parameters"), good])
            short = path.partition("/api/v1")[2]
            methods.append(method_text(verb, short, operation, schemas))
            roots |= bodies_parts(operation, schemas)
    head = (
        "from collections.abc import Iterator\nfrom typing import Any, BinaryIO, Literal\n\n"
        "from deskhand_client import models\nfrom deskhand_client.transport import Transport, _segment\n\n\n"
        'class Operations(Transport):\n    """One method per operation of the API, named like it."""\n\n'
    )
    return {
        "models.py": models_text(schemas, closure(schemas, roots)),
        "operations.py": HEAD.format("The API's operations.") + head + "\n".join(methods),
    }


def bodies_parts(operation: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    """What the fields of a body refer to: the body itself becomes keywords."""
    found: set[str] = set()
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        found |= references(schema)
    return found


def written() -> dict[Path, str]:
    """The files by their places."""
    from webapp.api.urls import api

    files = client_files(api.get_openapi_schema())
    first, _, rest = COPIED.read_text().partition('"""\n')
    files[COPIED.name] = f'{first}\n\nWritten by scripts/write_client: do not edit.\n"""\n{rest}'
    return {PACKAGE / name: text for name, text in files.items()}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    with tempfile.TemporaryDirectory(prefix="deskhand-client-") as folder:
        os.environ["DESKHAND_DATA_DIR"] = folder  # settings make secrets where there are none
        django.setup()
    for file, text in written().items():
        unfinished = file.with_suffix(f".{os.getpid()}")  # tests may read it meanwhile
        unfinished.write_text(text)
        unfinished.replace(file)


if __name__ == "__main__":
    main()
