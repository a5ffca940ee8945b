"""Where rows are written: in `services`, and nowhere else; and what the API may not import."""

import ast
from collections.abc import Iterator

import pytest

from testing.paths import REPOSITORY
from tests.test_structure import sources

OF_MANAGERS = {"create", "bulk_create", "bulk_update", "get_or_create", "update_or_create", "_raw_delete"}
"""Names that only managers and querysets have."""
WITHOUT_ARGUMENTS = {"save", "delete"}
"""With a first argument they are of files, forms and storages."""

ELSEWHERE = {
    "webapp/worker_door/": "reports of workers: it is itself the layer that writes what they report",
    "webapp/lib/long_work.py": "status and heartbeat of any long work, whose services are in its application",
}
"""Path -> why it may write."""


def may_write(name: str) -> bool:
    """`services/NOUN.py` of an application; a feature's folder has one `services.py`."""
    return "/services/" in name or name.endswith("/services.py") or name.startswith(tuple(ELSEWHERE))


def outside_services() -> list[str]:
    names = {file: str(file.relative_to(REPOSITORY)) for file in sources()}
    return [
        f"{name}:{line} {call}"
        for file, name in names.items()
        if name.startswith("webapp/") and not may_write(name)
        for line, call in writes(file.read_text())
    ]


def writes(text: str) -> Iterator[tuple[int, str]]:
    """(line, call) of what writes rows through a model, a manager or a queryset."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr.removeprefix("a") if node.func.attr.startswith("a") else node.func.attr
        plain = name in WITHOUT_ARGUMENTS and not node.args
        of_values = name == "update" and not node.args and node.keywords
        if name in OF_MANAGERS or plain or of_values:
            yield node.lineno, ast.unparse(node)[:80]


def test_rows_are_written_in_services_only():
    """An engineer finds a write by its noun: `APPLICATION/services/NOUN.py`."""
    assert outside_services() == []


@pytest.mark.parametrize(
    ("text", "is_write"),
    [
        ("Row.objects.filter(pk=1).update(a=1)", True),
        ("row.save(update_fields=['a'])", True),
        ("rows.delete()", True),
        ("await rows.adelete()", True),
        ("Row._default_manager.create(a=1)", True),
        ("Row.objects.bulk_create(rows)", True),
        ("seen.update(others)", False),
        ("storage.save(name, content)", False),
        ("storage.delete(name)", False),
        ("digest.update()", False),
    ],
)
def test_writes_are_recognised(text, is_write):
    assert bool(list(writes(text))) == is_write


def test_the_api_imports_nothing_of_pages():
    """What both need is a service, a query or an access helper."""
    found = {
        f"{file.relative_to(REPOSITORY)}: {node.module}"
        for file in sources()
        if file.is_relative_to(REPOSITORY / "webapp" / "api")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if is_of_pages(f"{node.module}.{name.name}")
    }
    assert found == set()


def is_of_pages(module: str) -> bool:
    if ".services" in module or ".queries" in module or module.startswith("webapp.api."):
        return False
    return any(part == "views" or part.endswith("_views") for part in module.split("."))
