"""The widgets of all programs, collected from the accessibility bus.

All questions of a kind are sent before the first answer is awaited,
and one question brings a program's whole tree: asking node by node takes seconds under emulation.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from workers.guest.widgets.accessibility_names import role_name, state_names
from workers.guest.widgets.dbus_calls import Answered, BusError, Connection, finish
from workers.guest.widgets.dbus_values import text, texts

PREFIXES = {
    "st": "state", "attr": "attributes", "cp": "component", "txt": "text", "val": "value", "act": "action",
}  # fmt: skip
BASE = "https://accessibility.ubuntu.example.org/ns/"
ATSPI = "org.a11y.atspi."
PROPERTIES = "org.freedesktop.DBus.Properties"
ROOT = "/org/a11y/atspi/accessible/root"
NULL = "/org/a11y/atspi/null"
MAX_NODES = 5000
MAX_DEPTH = 50
CALL_LIMIT_S = 2.0
"""A program that hangs costs this at each kind of question; its part of the tree is left out."""
OWN_SOCKET_LIMIT_S = 0.2
SCREEN_COORDINATES = bytes(4)
WHOLE_TEXT = b"\0\0\0\0\xff\xff\xff\xff"
REFS = ("a(so)",)
ITEMS = ("a((so)(so)(so)iiassusau)", "a((so)(so)(so)a(so)assusau)")
"""Old toolkits send the children instead of index and count."""
PLAIN_TOOLKITS = ("gtk", "GAIL")
"""Their widgets have no attributes worth a question but the toolkit's name."""
MANAGES_DESCENDANTS = "manages_descendants"
Ref = tuple[str, str]
"""Bus name and object path."""


@dataclass
class Node:
    """One widget."""

    ref: Ref
    parent: Ref
    index: int
    role: str
    name: str
    states: frozenset[str]
    interfaces: set[str]
    children: "list[Node]" = field(default_factory=list)
    box: tuple[int, int, int, int] | None = None
    text: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    """Further XML attributes: attr, val, act."""


class Bus:
    """The accessibility bus, and beside it programs' own sockets, which save the way through it."""

    def __init__(self) -> None:
        """Raises BusError."""
        session = Connection(os.environ.get("DBUS_SESSION_BUS_ADDRESS", ""), CALL_LIMIT_S)
        address: list[str] = []
        about = ("org.a11y.Bus", "/org/a11y/bus")
        session.call(about, about[0], "GetAddress", "", b"", ("s",), lambda answer: address.extend(answer))
        finish([session], CALL_LIMIT_S)
        if not address:
            raise BusError("no accessibility bus is known on the session bus")
        self._bus = Connection(address[0], CALL_LIMIT_S)
        self._own: dict[str, Connection] = {}

    def call(
        self, to: Ref, interface: str, method: str, signature: str, body: bytes, answers: tuple[str, ...],
        then: Answered,
    ) -> None:  # fmt: skip
        """As `Connection.call`, by the shortest way."""
        self._own.get(to[0], self._bus).call(to, interface, method, signature, body, answers, then)

    def finish(self) -> None:
        finish([self._bus, *self._own.values()], CALL_LIMIT_S)

    def come_closer(self, programs: Iterable[str]) -> None:
        """Use the sockets of those programs that have one."""
        found: dict[str, str] = {}
        for name in programs:

            def then(answer: Any, name: str = name) -> None:
                found[name] = answer[0]

            where = (name, ROOT)
            self.call(where, ATSPI + "Application", "GetApplicationBusAddress", "", b"", ("s",), then)
        self.finish()
        for name, address in found.items():
            with contextlib.suppress(BusError):
                self._own[name] = Connection(address, OWN_SOCKET_LIMIT_S, is_bus=False)


class Walker:
    """Collects the nodes of all programs."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.nodes: dict[Ref, Node] = {}

    def collect(self) -> list[Node]:
        """The applications' roots, their trees attached."""
        applications: list[Ref] = []
        call = self.bus.call
        call((ATSPI + "Registry", ROOT), ATSPI + "Accessible", "GetChildren", "", b"", REFS,
             lambda answer: applications.extend(answer[0]))  # fmt: skip
        # Programs keep the cache that brings their whole tree only while changes of it are listened for.
        registry = (ATSPI + "Registry", "/org/a11y/atspi/registry")
        event = text("object:children-changed:")
        wish = event + bytes(-len(event) % 4) + bytes(4) + text("")
        call(registry, ATSPI + "Registry", "RegisterEvent", "sass", wish, ("",), lambda _answer: None)
        self.bus.finish()
        self.bus.come_closer(name for name, _root in applications)
        for name, _root in applications:
            cache = (name, "/org/a11y/atspi/cache")
            call(cache, ATSPI + "Cache", "GetItems", "", b"", ITEMS, self._add_items)
        self.bus.finish()
        for ref in applications:
            if ref not in self.nodes:
                self._visit(ref, ("", NULL), 0)
        for node in list(self.nodes.values()):
            if MANAGES_DESCENDANTS in node.states:
                self._visit_children(node.ref)
        self.bus.finish()
        self._attach()
        return [self.nodes[ref] for ref in applications if ref in self.nodes]

    def _add_items(self, answer: tuple[Any, ...]) -> None:
        for ref, _application, parent, *rest in answer[0]:
            # Of old toolkits one value stands for index and count.
            index, rest = (rest[0], rest[2:]) if isinstance(rest[0], int) else (0, rest[1:])
            interfaces, name, role, _description, states = rest
            self._add(ref, parent, index, role_name(role), name, state_names(tuple(states)), interfaces)

    def _add(
        self,
        ref: Ref,
        parent: Ref,
        index: int,
        role: str,
        name: str,
        states: frozenset[str],
        interfaces: list[str],
    ) -> None:
        if len(self.nodes) < MAX_NODES:
            short = {interface.removeprefix(ATSPI) for interface in interfaces}
            self.nodes[ref] = Node(ref, parent, index, role, name, states, short)

    def _visit(self, ref: Ref, parent: Ref, index: int, depth: int = 0) -> None:
        """Ask one node about itself and then its children: for what no cache knows."""
        if ref in self.nodes or ref[1] == NULL or depth > MAX_DEPTH or len(self.nodes) >= MAX_NODES:
            return
        known: dict[str, Any] = {}

        def learn(key: str) -> Callable[[Any], None]:
            def then(answer: Any) -> None:
                known[key] = answer[0]
                if len(known) == 4:
                    states = state_names(tuple(known["states"]))
                    role, interfaces = role_name(known["role"]), known["interfaces"]
                    self._add(ref, parent, index, role, str(known["name"]), states, interfaces)
                    self._visit_children(ref, depth + 1)

            return then

        name = texts(ATSPI + "Accessible", "Name")
        self.bus.call(ref, PROPERTIES, "Get", "ss", name, ("v",), learn("name"))
        for method, key, answers in (
            ("GetRole", "role", ("u",)),
            ("GetState", "states", ("au",)),
            ("GetInterfaces", "interfaces", ("as",)),
        ):
            self.bus.call(ref, ATSPI + "Accessible", method, "", b"", answers, learn(key))

    def _visit_children(self, ref: Ref, depth: int = 1) -> None:
        def then(answer: Any) -> None:
            for index, child in enumerate(answer[0]):
                self._visit(child, ref, index, depth)

        self.bus.call(ref, ATSPI + "Accessible", "GetChildren", "", b"", REFS, then)

    def _attach(self) -> None:
        for node in self.nodes.values():
            if (parent := self.nodes.get(node.parent)) is not None and parent is not node:
                parent.children.append(node)
        for node in self.nodes.values():
            node.children.sort(key=lambda child: child.index)


class Detail:
    """Asks the nodes of a tree what only they know: place, text, value, actions."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    def fill(self, nodes: list[Node]) -> None:
        toolkits = self._toolkits({node.ref[0] for node in nodes})
        for node in nodes:
            self._ask(node, toolkits.get(node.ref[0], ""))
        self.bus.finish()

    def _toolkits(self, programs: set[str]) -> dict[str, str]:
        """Bus name -> name of the toolkit."""
        found: dict[str, str] = {}
        question = texts(ATSPI + "Application", "ToolkitName")
        for program in programs:

            def then(answer: Any, program: str = program) -> None:
                found[program] = str(answer[0])

            self.bus.call((program, ROOT), PROPERTIES, "Get", "ss", question, ("v",), then)
        self.bus.finish()
        return found

    def _ask(self, node: Node, toolkit: str) -> None:
        call, ref = self.bus.call, node.ref
        if "Component" in node.interfaces and {"showing", "visible"} <= node.states:
            place = partial(self._set, node, "box")
            call(ref, ATSPI + "Component", "GetExtents", "u", SCREEN_COORDINATES, ("(iiii)",), place)
        if "Text" in node.interfaces:
            whole = partial(self._set, node, "text")
            call(ref, ATSPI + "Text", "GetText", "ii", WHOLE_TEXT, ("s",), whole)
        if "Value" in node.interfaces:
            about = text(ATSPI + "Value")
            call(ref, PROPERTIES, "GetAll", "s", about, ("a{sv}",), partial(self._value, node))
        if "Action" in node.interfaces and "showing" in node.states:
            then = partial(self._actions, node)
            call(ref, ATSPI + "Action", "GetActions", "", b"", ("a(sss)",), then)
        if toolkit in PLAIN_TOOLKITS:
            node.facts[named("attr", "toolkit")] = toolkit
        else:
            then = partial(self._attributes, node)
            call(ref, ATSPI + "Accessible", "GetAttributes", "", b"", ("a{ss}",), then)

    def _set(self, node: Node, name: str, answer: Any) -> None:
        setattr(node, name, answer[0])

    def _value(self, node: Node, answer: Any) -> None:
        words = {
            "CurrentValue": "value", "MinimumValue": "min", "MaximumValue": "max", "MinimumIncrement": "step",
        }  # fmt: skip
        for key, value in answer[0].items():
            if key in words:
                node.facts[named("val", words[key])] = str(value)

    def _actions(self, node: Node, answer: Any) -> None:
        for name, description, keys in answer[0]:
            if name:
                node.facts[named("act", f"{name}_desc")] = description
                node.facts[named("act", f"{name}_kb")] = keys

    def _attributes(self, node: Node, answer: Any) -> None:
        for key, value in answer[0].items():
            node.facts[named("attr", key)] = value


@cache
def named(prefix: str, word: str) -> str:
    """XML name of an attribute; what XML does not allow becomes "-"."""
    plain = "".join(c if c.isalnum() or c in "_-." else "-" for c in word)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return f"{{{BASE}{PREFIXES[prefix]}}}{plain}"
