"""The XML of a tree is, byte for byte, what Python's ElementTree writes of it."""

import random
import xml.etree.ElementTree as ET

from workers.guest.widgets.accessibility_tree import ACTIONS, ATTRIBUTES, BOX, TEXT, VALUE, Node, Widgets
from workers.guest.widgets.tree_xml import BASE, PREFIXES, VALUES, printable, xml_of

WORDS = ("", "plain", 'a "quoted" & <tag>', "tab\tline\nreturn\r", "\x00\x07gone￼", "é 日本")


def tree(rng: random.Random) -> tuple[list[Node], Widgets]:
    found = Widgets({":1": rng.choice(["gtk", "VCL"])})
    nodes: list[Node] = []
    for number in range(rng.randrange(1, 12)):
        states = frozenset(rng.sample(["showing", "visible", "focused"], rng.randrange(4)))
        parent = (":1", f"/{rng.randrange(number)}") if number else (":1", "/null")
        node = Node(
            (":1", f"/{number}"), parent, number, -1, frozenset(), rng.choice(WORDS), "push-button", states
        )
        nodes.append(node)
        answers = {
            BOX: (1, -2, 3, 4),
            TEXT: rng.choice(WORDS),
            VALUE: {"CurrentValue": 0.5, "Text": ""},
            ACTIONS: [("click it", "does & so", ""), ("", "none", "")],
            ATTRIBUTES: {"a:b": rng.choice(WORDS), "7": "x"},
        }
        asked = tuple(question for question in answers if rng.random() < 0.5)
        found.nodes[node.ref], found.questions[node.ref] = node, asked
        for question in asked:
            found.answers[question][node.ref] = (answers[question],)
    found.attach()
    return [nodes[0]], found


def expected(node: Node, found: Widgets) -> ET.Element:
    def key(prefix: str, word: str) -> str:
        return f"{{{BASE}{PREFIXES[prefix]}}}{word}"

    made = ET.Element(node.role, {"name": printable(node.name)})
    for state in sorted(node.states):
        made.set(key("st", state), "true")
    if box := found.answer(BOX, node):
        made.set(key("cp", "screencoord"), f"({box[0]}, {box[1]})")
        made.set(key("cp", "size"), f"({box[2]}, {box[3]})")
    if found.toolkits[":1"] == "gtk":
        made.set(key("attr", "toolkit"), "gtk")
    for name in found.answer(VALUE, node) or ():
        if name in VALUES:
            made.set(key("val", "value"), "0.5")
    if found.answer(ACTIONS, node):
        made.set(key("act", "click-it_desc"), "does & so")
        made.set(key("act", "click-it_kb"), "")
    for name, value in (found.answer(ATTRIBUTES, node) or {}).items():
        made.set(key("attr", {"a:b": "a-b", "7": "_7"}[name]), printable(value))
    made.text = printable(found.answer(TEXT, node) or "") or None
    made.extend(expected(child, found) for child in node.children)
    return made


def test_any_tree_is_written_as_elementtree_writes_it() -> None:
    for prefix, word in PREFIXES.items():
        ET.register_namespace(prefix, BASE + word)
    for seed in range(300):
        roots, found = tree(random.Random(seed))
        frame = ET.Element("desktop-frame", {"name": "main"})
        frame.extend(expected(root, found) for root in roots)
        assert xml_of(roots, found) == ET.tostring(frame, encoding="unicode")
    assert xml_of([], Widgets({})) == '<desktop-frame name="main" />'


def test_children_stand_as_their_parent_names_them() -> None:
    """GTK numbers the items of a menu -1."""
    found = Widgets({})
    for path, index in (("/m", 0), ("/b", -1), ("/a", -1), ("/s", 2)):
        parent = ("", "/m") if path != "/m" else ("", "/null")
        ref = ("", path)
        found.nodes[ref] = Node(
            ref, parent, index, 3 if path == "/m" else 0, frozenset(), path, "menu", frozenset()
        )
        found.questions[ref] = ()
    assert [node.ref[1] for node in found.doubtful()] == ["/m"]
