"""The shape of the source tree: no import cycles, nothing too long or too wide, every room on the map."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import grimp
import pytest

from testing.paths import REPOSITORY

PRODUCT = ("training", "workers", "webapp")
MAX_LINES = 300
MAX_FUNCTION_LINES = 60
MAX_MODULES_IN_A_FOLDER = 24


@cache
def sources() -> tuple[Path, ...]:
    """Tracked Python files of the product, without migrations."""
    names = subprocess.check_output(["git", "ls-files", *PRODUCT], cwd=REPOSITORY, text=True).split()
    return tuple(REPOSITORY / name for name in names if name.endswith(".py") and "/migrations/" not in name)


@pytest.mark.parametrize("with_types", [False, True], ids=["at run time", "for type checkers"])
def test_no_modules_import_each_other_in_a_circle(with_types):
    graph = grimp.build_graph(*PRODUCT, exclude_type_checking_imports=not with_types, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert circles(imports) == []


def test_no_rooms_import_each_other_in_a_circle():
    """Of any package: what it holds, folders and modules, can be drawn with all arrows downwards."""
    graph = grimp.build_graph(*PRODUCT, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    packages = {module.rpartition(".")[0] for module in imports} - {""}
    found = {name: circles(rooms_of(name, imports)) for name in sorted(packages)}
    assert {name: knots for name, knots in found.items() if knots} == {}


def rooms_of(package: str, imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Folder or module directly within a package -> the others that it imports."""
    depth = package.count(".") + 2
    rooms: dict[str, set[str]] = {}
    for module, others in imports.items():
        if module.startswith(f"{package}."):
            inner = {".".join(one.split(".")[:depth]) for one in others if one.startswith(f"{package}.")}
            rooms.setdefault(".".join(module.split(".")[:depth]), set()).update(inner)
    return {room: others - {room} for room, others in rooms.items()}


def test_rooms_that_import_each_other_are_found():
    imports = {"app.a.x": {"app.b.y"}, "app.b.z": {"app.a.w"}, "app.b.y": set(), "app.a.w": set()}
    assert circles(imports) == []
    assert circles(rooms_of("app", imports)) == [["app.a", "app.b"]]


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules of which each imports each other, directly or not (Tarjan's components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(imports[module] & imports.keys()):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return found


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_no_file_is_too_long():
    lengths = {str(file.relative_to(REPOSITORY)): len(file.read_text().splitlines()) for file in sources()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_function_is_too_long():
    too_long = {}
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES:
                too_long[f"{file.relative_to(REPOSITORY)}:{node.lineno}"] = node.name
    assert too_long == {}


def test_no_folder_is_too_wide():
    folders = [file.parent for file in sources() if file.name != "__init__.py"]
    widths = {str(folder.relative_to(REPOSITORY)): folders.count(folder) for folder in set(folders)}
    assert {name: width for name, width in widths.items() if width > MAX_MODULES_IN_A_FOLDER} == {}


def test_the_map_names_every_room_and_no_other():
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    table = page.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `((?:training|workers|webapp)/\w+)/`", table, flags=re.MULTILINE))
    parts = {file.relative_to(REPOSITORY).parts for file in sources()}
    assert named == {"/".join(part[:2]) for part in parts if len(part) > 2}


SEES_REQUESTS = re.compile(r"\b(HttpRequest|MemberRequest|QueryDict|WebsocketConsumer|scope\[)|ninja")
READER = "webapp/lib/request_values.py"
DIGIT_TESTS = ("isdigit", "isdecimal", "isnumeric")


def test_values_of_requests_are_read_by_the_one_strict_reader():
    """`int("²")`, a number of 5,000 digits and a deep JSON text were answers of 500, view by view."""
    found = []
    for file in sources():
        name, text = str(file.relative_to(REPOSITORY)), file.read_text()
        if name.startswith("webapp/") and name != READER and SEES_REQUESTS.search(text):
            found += [f"{name}:{line} {call}" for line, call in loose_readings(text)]
    assert found == [], f"use {READER}"


def loose_readings(text: str) -> list[tuple[int, str]]:
    """(line, call) of what reads a number or JSON without limits; of constants they may."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="int" | "float" as called) if node.args:
                found.append((node.lineno, called))
            case ast.Attribute(value=ast.Name(id="json"), attr="loads" | "load" as called):
                found.append((node.lineno, f"json.{called}"))
            case ast.Attribute(attr=called) if called in DIGIT_TESTS:
                found.append((node.lineno, called))
    return found


def test_loose_readings_are_found():
    text = "int(request.GET['a'])\njson.loads(request.body)\nx.isdigit()\nint"
    assert [call for _, call in loose_readings(text)] == ["int", "json.loads", "isdigit"]


EXPRESSION_WAIT = re.compile(r"wait_for_function\(\s*f?[\"'](?!\()")


def test_waits_in_a_page_are_functions():
    """An expression is evaluated anew at each poll, inside the page: its CSP refuses the second one."""
    names = subprocess.check_output(
        ["git", "ls-files", "tests", "testing", "benchmarks"], cwd=REPOSITORY, text=True
    )
    files = [REPOSITORY / name for name in names.split() if name.endswith(".py")]
    assert [str(file) for file in files if EXPRESSION_WAIT.search(file.read_text())] == []
    assert EXPRESSION_WAIT.search('wait_for_function(\n    f"{PICTURES} > 0")')


def test_rows_are_locked_in_order_of_id():
    """Two that lock several of the same rows in different orders wait for each other, for ever."""
    unordered = {
        str(path.relative_to(REPOSITORY)): found
        for path in sources()
        if (found := unordered_locks(path.read_text()))
    }
    assert unordered == {}


def unordered_locks(text: str) -> list[int]:
    """Lines whose `select_for_update` may meet several rows and names no order in its statement."""
    if "select_for_update" not in text:
        return []
    one_row = {"get", "first", "order_by"}
    found = []
    for statement in ast.walk(ast.parse(text)):
        if not isinstance(statement, ast.stmt) or isinstance(statement, CONTAINERS):
            continue
        names = {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
        if "select_for_update" in names and not names & one_row:
            found.append(statement.lineno)
    return found


CONTAINERS = (ast.FunctionDef, ast.ClassDef, ast.With, ast.If, ast.Try)


def test_unordered_locks_are_found():
    assert unordered_locks("with a:\n    x = R.objects.select_for_update().in_bulk([1])") == [2]
    assert unordered_locks("for x in R.objects.select_for_update().order_by('id'): pass") == []
    assert unordered_locks("x = R.objects.select_for_update().get(pk=1)") == []
