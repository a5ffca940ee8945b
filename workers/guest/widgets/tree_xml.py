"""A widget tree as OSWorld's XML, written as Python's ElementTree writes it."""

import re
from functools import lru_cache
from typing import Any

from workers.guest.widgets.accessibility_tree import (
    ACTIONS,
    ATTRIBUTES,
    BOX,
    MAX_DEPTH,
    PLAIN_TOOLKITS,
    TEXT,
    VALUE,
    Node,
    Widgets,
)

PREFIXES = {
    "st": "state", "attr": "attributes", "cp": "component", "txt": "text", "val": "value", "act": "action",
}  # fmt: skip
BASE = "https://accessibility.ubuntu.example.org/ns/"
VALUES = {
    "CurrentValue": "value", "MinimumValue": "min", "MaximumValue": "max", "MinimumIncrement": "step",
}  # fmt: skip
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffc\ufffe\uffff]")
SPECIAL = re.compile('[&<>"\r\n\t]')
IN_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
IN_QUOTES = IN_TEXT | {'"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#09;"}


def xml_of(roots: list[Node], found: Widgets) -> str:
    """One document of all programs."""
    parts: list[str] = []
    used: set[str] = set()
    for root in roots:
        _write(root, found, parts, used, 0)
    spaces = "".join(f' xmlns:{prefix}="{BASE}{PREFIXES[prefix]}"' for prefix in sorted(used))
    head = f'<desktop-frame{spaces} name="main"'
    return f"{head}>{''.join(parts)}</desktop-frame>" if parts else f"{head} />"


def _write(node: Node, found: Widgets, parts: list[str], used: set[str], depth: int) -> None:
    parts.append(f'<{node.role} name="{quoted(node.name)}"{_states(node.states)}')
    if node.states:
        used.add("st")
    if (box := found.answer(BOX, node)) is not None:
        left, top, width, height = box
        parts.append(f' cp:screencoord="({left}, {top})" cp:size="({width}, {height})"')
        used.add("cp")
    for key, value in facts_of(node, found).items():
        parts.append(f' {key}="{quoted(value)}"')
        used.add(key.partition(":")[0])
    text = escaped(found.answer(TEXT, node) or "")
    children = node.children if depth < MAX_DEPTH else []
    if not text and not children:
        parts.append(" />")
        return
    parts.append(f">{text}")
    for child in children:
        _write(child, found, parts, used, depth + 1)
    parts.append(f"</{node.role}>")


def facts_of(node: Node, found: Widgets) -> dict[str, str]:
    """Further attributes: toolkit, value, actions."""
    facts: dict[str, Any] = {}
    if (toolkit := found.toolkits.get(node.ref[0], "")) in PLAIN_TOOLKITS:
        facts[named("attr", "toolkit")] = toolkit
    for key, value in (found.answer(VALUE, node) or {}).items():
        if key in VALUES:
            facts[named("val", VALUES[key])] = str(value)
    for name, description, keys in found.answer(ACTIONS, node) or ():
        if name:
            facts[named("act", f"{name}_desc")] = description
            facts[named("act", f"{name}_kb")] = keys
    for key, value in (found.answer(ATTRIBUTES, node) or {}).items():
        facts[named("attr", key)] = value
    return facts


@lru_cache(maxsize=1024)
def _states(states: frozenset[str]) -> str:
    return "".join(f' {named("st", state)}="true"' for state in sorted(states))


@lru_cache(maxsize=4096)
def named(prefix: str, word: str) -> str:
    """XML name of an attribute; what XML does not allow becomes "-"."""
    plain = "".join(c if c.isalnum() or c in "_-." else "-" for c in word)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return f"{prefix}:{plain}"


def printable(text: str) -> str:
    """Without what XML cannot hold."""
    return UNPRINTABLE.sub("", text)


def escaped(text: str) -> str:
    """Between tags."""
    return SPECIAL.sub(lambda found: IN_TEXT.get(found[0], found[0]), printable(text))


def quoted(text: str) -> str:
    return SPECIAL.sub(lambda found: IN_QUOTES[found[0]], printable(text))
