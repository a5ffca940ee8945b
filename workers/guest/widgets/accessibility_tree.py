"""The widgets of all programs, collected from the accessibility bus.

All questions of a kind are sent before the first answer is awaited, and one question brings a program's whole
tree: asking node by node takes seconds under emulation. Programs answer one question after the other, and the
reader works meanwhile: what it asked last time it asks again before it knows the tree.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from workers.guest.widgets.accessibility_names import role_name, state_names
from workers.guest.widgets.cache_items import ITEMS, Item
from workers.guest.widgets.dbus_values import Answers, Ref, readers, text, texts
from workers.guest.widgets.program_sockets import ATSPI, REFS, ROOT, Bus

PROPERTIES = "org.freedesktop.DBus.Properties"
NULL = "/org/a11y/atspi/null"
MAX_NODES = 5000
MAX_DEPTH = 50
PLAIN_TOOLKITS = ("gtk", "GAIL")
"""Their widgets have no attributes worth a question but the toolkit's name."""
MANAGES_DESCENDANTS = "manages_descendants"
ONE_VALUE = readers("v")


@dataclass(frozen=True, eq=False)
class Question:
    """What only a widget itself knows."""

    interface: str
    method: str
    signature: str
    body: bytes
    answers: Answers


BOX = Question(ATSPI + "Component", "GetExtents", "u", bytes(4), readers("(iiii)"))
"""On the screen."""
TEXT = Question(ATSPI + "Text", "GetText", "ii", b"\0\0\0\0\xff\xff\xff\xff", readers("s"))
VALUE = Question(PROPERTIES, "GetAll", "s", text(ATSPI + "Value"), readers("a{sv}"))
ACTIONS = Question(ATSPI + "Action", "GetActions", "", b"", readers("a(sss)"))
ATTRIBUTES = Question(ATSPI + "Accessible", "GetAttributes", "", b"", readers("a{ss}"))
CHILDREN = Question(ATSPI + "Accessible", "GetChildren", "", b"", REFS)
QUESTIONS = (BOX, TEXT, VALUE, ACTIONS, ATTRIBUTES, CHILDREN)
Ask = Callable[["Node"], Iterable[Question]]


@dataclass(slots=True)
class Node:
    ref: Ref
    parent: Ref
    index: int
    num_children: int
    interfaces: frozenset[str]
    name: str
    role: str
    states: frozenset[str]
    children: "list[Node]" = field(default_factory=list)


def everything(node: Node) -> Iterable[Question]:
    """What the tree holds of a widget."""
    if "Component" in node.interfaces and {"showing", "visible"} <= node.states:
        yield BOX
    if "Text" in node.interfaces:
        yield TEXT
    if "Value" in node.interfaces:
        yield VALUE
    if "Action" in node.interfaces and "showing" in node.states:
        yield ACTIONS


def text_of_terminals(node: Node) -> Iterable[Question]:
    if node.role == "terminal" and "showing" in node.states:
        yield TEXT


class Widgets:
    """What one read found."""

    def __init__(self, toolkits: dict[str, str]) -> None:
        self.nodes: dict[Ref, Node] = {}
        self.toolkits = toolkits
        """Bus name -> name of the toolkit."""
        self.questions: dict[Ref, tuple[Question, ...]] = {}
        self.answers: dict[Question, dict[Ref, Any]] = {question: {} for question in QUESTIONS}

    def answer(self, question: Question, node: Node) -> Any:
        """None when there is none, or the question did not arise."""
        values = self.answers[question].get(node.ref) if question in self.questions[node.ref] else None
        return values[0] if values is not None else None

    def doubtful(self) -> list[Node]:
        """Those whose children are not all known, or not in order.

        GTK says nothing of a widget that is packed into a box later on, and does not number menus' items.
        """
        places: dict[Ref, list[int]] = {}
        for node in self.nodes.values():
            places.setdefault(node.parent, []).append(node.index)
        found = []
        for node in self.nodes.values():
            here = places.get(node.ref, ())
            is_whole = len(here) == node.num_children and MANAGES_DESCENDANTS not in node.states
            if not is_whole or (len(here) > 1 and (-1 in here or len(set(here)) < len(here))):
                found.append(node)
        return found

    def attach(self) -> None:
        """Put nodes into their parents, as those name them, else by what they say themselves."""
        for node in self.nodes.values():
            if (parent := self.nodes.get(node.parent)) is not None and parent is not node:
                parent.children.append(node)
        for node in self.nodes.values():
            named = {ref: place for place, ref in enumerate(self.answer(CHILDREN, node) or ())}
            node.children.sort(key=lambda child: (named.get(child.ref, len(named)), child.index))


class TreeReader:
    """Reads again and again; what it remembers saves time and changes no answer."""

    def __init__(self) -> None:
        """Raises BusError."""
        self._bus = Bus()
        self._toolkits: dict[str, str] = {}
        self._last: dict[Ref, tuple[Question, ...]] = {}

    def tree(self) -> tuple[list[Node], Widgets]:
        """The roots of all programs, and what their widgets said. Raises BusError."""
        roots = self._bus.programs()
        programs = {name for name, _path in roots}
        self._toolkits = {name: kind for name, kind in self._toolkits.items() if name in programs}
        expected = {ref: asked for ref, asked in self._last.items() if ref[0] in programs}
        found = self._read(roots, everything, expected, with_attributes=True)
        self._last = found.questions
        return [found.nodes[ref] for ref in roots if ref in found.nodes], found

    def terminals(self) -> list[tuple[Node, str]]:
        """Those that are seen, with their text. Raises BusError."""
        found = self._read(self._bus.programs(), text_of_terminals, {}, with_attributes=False)
        seen = [node for node in found.nodes.values() if TEXT in found.questions[node.ref]]
        return [(node, found.answer(TEXT, node) or "") for node in seen]

    def _read(
        self, roots: list[Ref], ask: Ask, expected: dict[Ref, tuple[Question, ...]], *, with_attributes: bool
    ) -> Widgets:
        self._bus.come_closer(name for name, _path in roots)
        reading = Reading(self._bus, self._toolkits, ask, expected)
        try:
            reading.collect(roots)
            if with_attributes:
                reading.ask_attributes()
        finally:
            self._bus.step_back()
        reading.found.attach()
        return reading.found


class Reading:
    def __init__(
        self, bus: Bus, toolkits: dict[str, str], ask: Ask, expected: dict[Ref, tuple[Question, ...]]
    ) -> None:
        """`expected`: what will probably be asked."""
        self._bus = bus
        self._ask = ask
        self._expected = expected
        self.found = Widgets(toolkits)

    def collect(self, roots: list[Ref]) -> None:
        """All nodes, and the answers to their questions."""
        programs = [name for name, _path in roots]
        self._ask_toolkits(programs)
        for name in programs:
            cache = (name, "/org/a11y/atspi/cache")
            self._bus.call(cache, ATSPI + "Cache", "GetItems", "", b"", ITEMS, self._add_items)
        for ref, questions in self._expected.items():
            for question in questions:
                self._put(ref, question)
        self._bus.finish()
        for ref in roots:
            if ref not in self.found.nodes:
                self._visit(ref, ("", NULL), 0)
        for node in self.found.doubtful():
            self._complete(node)
        self._bus.finish()

    def ask_attributes(self) -> None:
        """Of all nodes whose toolkit has some."""
        found = self.found
        self._ask_toolkits({name for name, _path in found.nodes})
        self._bus.finish()
        for ref in found.nodes:
            if found.toolkits.get(ref[0], "") not in PLAIN_TOOLKITS:
                found.questions[ref] += (ATTRIBUTES,)
                self._put_unless_expected(ref, ATTRIBUTES)
        self._bus.finish()

    def _put(self, ref: Ref, question: Question) -> None:
        keep = partial(self.found.answers[question].__setitem__, ref)
        self._bus.call(
            ref,
            question.interface,
            question.method,
            question.signature,
            question.body,
            question.answers,
            keep,
        )

    def _put_unless_expected(self, ref: Ref, question: Question) -> None:
        if question not in self._expected.get(ref, ()):
            self._put(ref, question)

    def _ask_toolkits(self, programs: Iterable[str]) -> None:
        toolkits = self.found.toolkits
        question = texts(ATSPI + "Application", "ToolkitName")
        for program in programs:
            if program not in toolkits:
                keep = partial(self._learn_toolkit, program)
                self._bus.call((program, ROOT), PROPERTIES, "Get", "ss", question, ONE_VALUE, keep)

    def _learn_toolkit(self, program: str, answer: Any) -> None:
        self.found.toolkits[program] = str(answer[0])

    def _add_items(self, answer: tuple[list[Item]]) -> None:
        for item in answer[0]:
            self._add(item)

    def _add(self, item: Item) -> None:
        found = self.found
        if len(found.nodes) < MAX_NODES:
            ref = item.ref
            found.nodes[ref] = node = Node(*item)
            found.questions[ref] = questions = tuple(self._ask(node))
            for question in questions:
                self._put_unless_expected(ref, question)

    def _complete(self, node: Node) -> None:
        """Visit the children that no cache knows."""
        ref = node.ref
        self.found.questions[ref] += (CHILDREN,)
        if (known := self.found.answers[CHILDREN].get(ref)) is not None:
            self._visit_all(ref, 1, known)
        else:
            self._visit_children(ref)

    def _visit(self, ref: Ref, parent: Ref, index: int, depth: int = 0) -> None:
        """Ask one node about itself and then its children: for what no cache knows."""
        nodes = self.found.nodes
        if ref in nodes or ref[1] == NULL or depth > MAX_DEPTH or len(nodes) >= MAX_NODES:
            return
        known: dict[str, Any] = {}

        def learn(key: str, answer: Any) -> None:
            known[key] = answer[0]
            if len(known) == 4:
                interfaces = frozenset(name.removeprefix(ATSPI) for name in known["interfaces"])
                role, states = role_name(known["role"]), state_names(tuple(known["states"]))
                self._add(Item(ref, parent, index, -1, interfaces, str(known["name"]), role, states))
                self._visit_children(ref, depth + 1)

        name = texts(ATSPI + "Accessible", "Name")
        self._bus.call(ref, PROPERTIES, "Get", "ss", name, ONE_VALUE, partial(learn, "name"))
        for method, key, answers in (
            ("GetRole", "role", readers("u")),
            ("GetState", "states", readers("au")),
            ("GetInterfaces", "interfaces", readers("as")),
        ):
            self._bus.call(ref, ATSPI + "Accessible", method, "", b"", answers, partial(learn, key))

    def _visit_children(self, ref: Ref, depth: int = 1) -> None:
        then = partial(self._visit_all, ref, depth)
        self._bus.call(ref, ATSPI + "Accessible", "GetChildren", "", b"", REFS, then)

    def _visit_all(self, ref: Ref, depth: int, answer: Any) -> None:
        self.found.answers[CHILDREN][ref] = answer
        for index, child in enumerate(answer[0]):
            self._visit(child, ref, index, depth)
