"""A registry without its rows of some modules, as a person who deletes a feature would leave it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""First character, and the one behind the last."""


def without_rows(text: str, modules: Iterable[str], keys: Iterable[str] = ()) -> str:
    """The source without imports of these modules, without functions, elements and typed fields that need
    them, and without elements that begin with one of these keys."""
    modules, keys = tuple(modules), frozenset(keys)
    while True:
        tree, starts = ast.parse(text), _line_starts(text)
        names = set(_names_bound(tree, modules))
        spans = [_widened(text, _span(node, starts)) for node in _doomed(tree, names, modules, keys)]
        if not spans:
            return text
        for first, last in sorted(_outermost(spans), reverse=True):
            text = text[:first] + text[last:]


def names_any(text: str, modules: Iterable[str]) -> bool:
    """Whether the source imports one of these modules, or names it in a string."""
    modules = tuple(modules)
    return any(_is_of(node, modules) for node in ast.walk(ast.parse(text)))


def _names_bound(tree: ast.Module, modules: tuple[str, ...]) -> Iterator[str]:
    """Module-level names that stand for the modules: imported from them, or functions that need them."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in _imported_of(node, modules))
        elif isinstance(node, ast.FunctionDef) and any(_is_of(part, modules) for part in ast.walk(node)):
            yield node.name


def _doomed(
    tree: ast.Module, names: set[str], modules: tuple[str, ...], keys: frozenset[str]
) -> Iterator[ast.AST]:
    """What goes now: elements first, since an import is gone before the elements that need its names are."""
    elements = [
        node
        for display in ast.walk(tree)
        for node in _elements(display)
        if _is_key(node[0], keys | names if len(node) == 1 else keys)
        or any(_is_of(part, modules) or _loads(part, names) for root in node for part in ast.walk(root))
    ]
    if elements:
        yield from map(_joined, elements)
        return
    yield from _typed_fields(tree, names)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = _imported_of(node, modules)
            yield from [node] if len(found) == len(node.names) else found
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            yield node


def _typed_fields(tree: ast.Module, names: set[str]) -> Iterator[ast.AST]:
    """Fields of classes whose type is one of these."""
    for found in tree.body:
        for node in found.body if isinstance(found, ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and any(_loads(part, names) for part in ast.walk(node)):
                yield node


def _elements(node: ast.AST) -> Iterator[tuple[ast.expr, ...]]:
    """Elements of a list, tuple, set or call, and (key, value) of a dict."""
    match node:
        case ast.List(elts=found) | ast.Tuple(elts=found) | ast.Set(elts=found):
            yield from ((element,) for element in found)
        case ast.Dict(keys=keys, values=values):
            yield from ((key, value) if key else (value,) for key, value in zip(keys, values, strict=True))


def _joined(element: tuple[ast.expr, ...]) -> ast.expr:
    """One node that spans key and value."""
    first, last = element[0], element[-1]
    whole = ast.Constant(None)
    whole.lineno, whole.col_offset = first.lineno, first.col_offset
    whole.end_lineno, whole.end_col_offset = last.end_lineno, last.end_col_offset
    return whole


def _imported_of(node: ast.Import | ast.ImportFrom, modules: tuple[str, ...]) -> list[ast.alias]:
    prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [alias for alias in node.names if _is_inside(f"{prefix}{alias.name}", modules)]


def _is_of(node: ast.AST, modules: tuple[str, ...]) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return bool(_imported_of(node, modules))
        case ast.Constant(value=str(text)):
            return _is_inside(text.partition(":")[0], modules)
    return False


def _is_key(node: ast.expr, keys: frozenset[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in keys


def _loads(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_inside(dotted: str, modules: tuple[str, ...]) -> bool:
    return any(dotted == module or dotted.startswith(f"{module}.") for module in modules)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _span(node: ast.AST, starts: list[int]) -> Span:
    """Of ASCII sources, as registries are: ast counts bytes."""
    first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])
    return starts[first - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _widened(text: str, span: Span) -> Span:
    """With the comma behind it, and with the whole line where nothing else stands on it."""
    first, last = span
    while text[last : last + 1] in (",", " "):
        last += 1
    line = text.rfind("\n", 0, first) + 1
    if not text[line:first].strip() and text[last : last + 1] in ("\n", ""):
        return line, last + 1
    return first, last


def _outermost(spans: list[Span]) -> list[Span]:
    """Without those that lie within others."""
    return [
        one
        for one in set(spans)
        if not any(other != one and other[0] <= one[0] and one[1] <= other[1] for other in spans)
    ]
