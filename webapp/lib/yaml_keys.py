"""Keys of a typed YAML text, and at which line each stands."""

from collections.abc import Iterator

import yaml

MAX_DEPTH = 5
"""Sections within sections; a config has three."""


def lines_of(text: str, depth: int = MAX_DEPTH) -> dict[str, int]:
    """Dotted key (items of lists by number) -> line, from 1. The text must be valid YAML."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_lines_below(root, (), depth)) if root is not None else {}


def _lines_below(node: yaml.Node, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, int]]:
    if not depth:
        return
    for key, marked, value in _entries(node):
        place = (*path, key)
        yield ".".join(place), marked.start_mark.line + 1
        yield from _lines_below(value, place, depth - 1)


def _entries(node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """(key or number, where it begins, value) of a mapping or a list."""
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((str(place), value, value) for place, value in enumerate(node.value))
