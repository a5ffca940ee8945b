"""Our table of a tree is the one that OSWorld's own agents write, on Ubuntu and on Windows.

Theirs is asked of OSWorld's own package (`make osworld-env`, part of the tests' set-up).
"""

import json
import random
import subprocess
from xml.etree import ElementTree

from testing.paths import REPOSITORY
from training.observations.osworld_table import osworld_table

PYTHON = REPOSITORY / ".venv-osworld" / "bin" / "python"
THEIRS = """
import ast, importlib.util, json, sys
import xml.etree.ElementTree as ET
from mm_agents.accessibility_tree_wrap.heuristic_retrieve import filter_nodes
source = open(importlib.util.find_spec("mm_agents").submodule_search_locations[0] + "/agent.py").read()
kept = [node for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "linearize_accessibility_tree"
        or isinstance(node, ast.Assign) and "_ns_" in node.targets[0].id]
exec(compile(ast.Module(kept, []), "agent.py", "exec"))
print(json.dumps([linearize_accessibility_tree(*row) for row in json.load(sys.stdin)]))
"""
"""Its module needs packages of every model vendor; the function needs none of them."""
ROLES = [
    *("push-button", "label", "entry", "menu", "menu-item", "document-web", "check-box", "panel", "frame"),
    *("table-cell", "terminal", "text", "heading", "toolbar", "uiimage", "link", "filler", "static"),
]
STATES = ["showing", "visible", "enabled", "editable", "expandable", "checkable", "focused"]
TEXTS = ["", "Save", 'say "hi"', "a\tb\nc", "é 日本 😀", "<&>", "  "]


def tree(system: str, seed: int, num_widgets: int = 60) -> str:
    """Widgets with and without everything that decides whether and how one is listed."""
    rng, base = random.Random(seed), f"https://accessibility.{system}.example.org/ns/"
    root = ElementTree.Element("desktop-frame")
    parents = [root]
    for _ in range(num_widgets):
        attributes = {f"{{{base}state}}{state}": "true" for state in STATES if rng.random() < 0.85}
        if rng.random() < 0.9:
            place, size = ((rng.randint(-1, 900), rng.randint(0, 600)) for _ in range(2))
            attributes |= {
                f"{{{base}component}}screencoord": str(place),
                f"{{{base}component}}size": str(size),
            }
        if rng.random() < 0.3:
            attributes[f"{{{base}value}}value"] = rng.choice(TEXTS)
            attributes[f"{{{base}class}}class"] = rng.choice(["EditWrapper", "Button"])
            attributes[f"{{{base}attributes}}class"] = "GtkButton"
            attributes[f"{{{base}attributes}}description"] = "what it does"
        made = ElementTree.SubElement(rng.choice(parents), rng.choice(ROLES), attributes)
        made.set("name", rng.choice(TEXTS))
        made.text = rng.choice(TEXTS) or None
        parents.append(made)
    return ElementTree.tostring(root, encoding="unicode")


def test_the_table_is_osworlds_own() -> None:
    asked = [(tree(system, seed), system) for system in ("ubuntu", "windows") for seed in range(30)]
    answer = subprocess.run(
        [PYTHON, "-c", THEIRS],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    theirs = json.loads(answer.stdout)
    assert [osworld_table(xml) for xml, _ in asked] == theirs
    assert sum(table.count("\n") for table in theirs) > 500
