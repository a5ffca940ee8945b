"""Keys of a typed YAML text: at which line each stands, and which knob an unknown one resembles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

import yaml

MAX_DEPTH = 5
"""Sections within sections; a config has three."""


def lines_of(text: str) -> dict[str, int]:
    """Dotted key -> line, from 1. The text must be valid YAML."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_lines_below(root, (), MAX_DEPTH)) if root is not None else {}


def _lines_below(node: yaml.Node, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, int]]:
    if not isinstance(node, yaml.MappingNode) or not depth:
        return
    for key, value in node.value:
        place = (*path, str(key.value))
        yield ".".join(place), key.start_mark.line + 1
        yield from _lines_below(value, place, depth - 1)


def resembling(path: str, known: Iterable[str]) -> str:
    """ "; is algorithm.num_steps meant?" for the nearest known name; "" when none is near."""
    near = get_close_matches(path, list(known), n=1, cutoff=0.75)
    return f"; is {near[0]} meant?" if near else ""
