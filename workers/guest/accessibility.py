"""Tool: what programs tell about their widgets, as OSWorld's XML on stdout (`tree`) or a terminal's text."""

import gc
import re
import sys
import xml.etree.ElementTree as ET

from workers.guest.widgets.accessibility_tree import (
    BASE,
    MAX_DEPTH,
    PREFIXES,
    Bus,
    Detail,
    Node,
    Walker,
    named,
)

UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffc\ufffe\uffff]")


def printable(text: str) -> str:
    """Without what XML cannot hold."""
    return UNPRINTABLE.sub("", text)


def element(node: Node, depth: int = 0) -> ET.Element:
    """The XML of a node and everything in it."""
    made = ET.Element(node.role, {"name": printable(node.name)})
    for state in sorted(node.states):
        made.set(named("st", state), "true")
    if node.box is not None:
        left, top, width, height = node.box
        made.set(named("cp", "screencoord"), f"({left}, {top})")
        made.set(named("cp", "size"), f"({width}, {height})")
    for key, value in node.facts.items():
        made.set(key, printable(value))
    made.text = printable(node.text) or None
    if depth < MAX_DEPTH:
        made.extend(element(child, depth + 1) for child in node.children)
    return made


def write_tree(walker: Walker) -> None:
    applications = walker.collect()
    Detail(walker.bus).fill(list(walker.nodes.values()))
    for prefix, word in PREFIXES.items():
        ET.register_namespace(prefix, BASE + word)
    frame = ET.Element("desktop-frame", {"name": "main"})
    frame.extend(element(application) for application in applications)
    sys.stdout.write(ET.tostring(frame, encoding="unicode"))


def write_terminal(walker: Walker) -> None:
    """The text of the terminal in front, else of the first one; nothing when there is none."""
    walker.collect()
    terminals = [
        node for node in walker.nodes.values() if node.role == "terminal" and "showing" in node.states
    ]
    Detail(walker.bus).fill(terminals)
    terminals.sort(key=lambda node: "focused" not in node.states)
    sys.stdout.write(terminals[0].text.rstrip() if terminals else "")


def main(arguments: list[str]) -> int:
    gc.disable()  # it looks at every widget, over and over, and this process ends with its answer
    walker = Walker(Bus())
    {"tree": write_tree, "terminal": write_terminal}[arguments[0]](walker)
    return 0
