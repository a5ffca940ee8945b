"""The widgets of all programs, collected from the accessibility bus.

All questions of a kind are sent before the first answer is awaited,
and one question brings a program's whole tree: asking node by node takes seconds under emulation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gio, GLib  # noqa: E402 - the version must be chosen first

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
CALL_LIMIT_MS = 10_000
"""A program that hangs costs this once; its part of the tree is left out."""
SCREEN_COORDINATES = 0
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
    """Pipelined calls on the accessibility bus."""

    def __init__(self) -> None:
        session = Gio.bus_get_sync(Gio.BusType.SESSION)
        answer = session.call_sync(
            "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", None, None, 0, CALL_LIMIT_MS, None
        )
        flags = Gio.DBusConnectionFlags
        self._connection = Gio.DBusConnection.new_for_address_sync(
            answer.unpack()[0], flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None
        )
        self._waiting = 0

    def ask(
        self, ref: Ref, interface: str, method: str, arguments: "GLib.Variant | None", then: Callable
    ) -> None:
        """Send a call; `then(answer)` runs in `finish`, not at all when the call fails."""

        def answered(connection: object, result: object) -> None:
            self._waiting -= 1
            try:
                answer = self._connection.call_finish(result)
            except GLib.Error:
                return  # the widget has gone, or its program does not know the question
            then(answer)

        self._waiting += 1
        self._connection.call(
            ref[0], ref[1], interface, method, arguments, None, 0, CALL_LIMIT_MS, None, answered
        )

    def finish(self) -> None:
        """Wait until every call, also those asked meanwhile, is answered."""
        context = GLib.MainContext.default()
        while self._waiting:
            context.iteration(True)


class Walker:
    """Collects the nodes of all programs."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.nodes: dict[Ref, Node] = {}

    def collect(self) -> list[Node]:
        """The applications' roots, their trees attached."""
        applications: list[Ref] = []
        self.bus.ask(
            (ATSPI + "Registry", ROOT), ATSPI + "Accessible", "GetChildren", None,
            lambda answer: applications.extend(tuple(ref) for ref in answer.unpack()[0]),
        )  # fmt: skip
        # Programs keep the cache that brings their whole tree only while changes of it are listened for.
        wish = GLib.Variant("(sass)", ("object:children-changed:", [], ""))
        registry = (ATSPI + "Registry", "/org/a11y/atspi/registry")
        self.bus.ask(registry, ATSPI + "Registry", "RegisterEvent", wish, lambda _answer: None)
        self.bus.finish()
        for ref in applications:
            self.bus.ask(
                (ref[0], "/org/a11y/atspi/cache"), ATSPI + "Cache", "GetItems", None, self._add_items
            )
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

    def _add_items(self, answer: "GLib.Variant") -> None:
        for item in answer.unpack()[0]:
            ref, _application, parent = (tuple(part) for part in item[:3])
            # Old toolkits send the children here instead of index and count.
            index, rest = (item[3], item[5:]) if isinstance(item[3], int) else (0, item[4:])
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

        def learn(key: str) -> Callable:
            def then(answer: "GLib.Variant") -> None:
                known[key] = answer.unpack()[0]
                if len(known) == 4:
                    states = state_names(tuple(known["states"]))
                    role, interfaces = role_name(known["role"]), known["interfaces"]
                    self._add(ref, parent, index, role, known["name"], states, interfaces)
                    self._visit_children(ref, depth + 1)

            return then

        name = GLib.Variant("(ss)", (ATSPI + "Accessible", "Name"))
        self.bus.ask(ref, PROPERTIES, "Get", name, learn("name"))
        for method, key in (("GetRole", "role"), ("GetState", "states"), ("GetInterfaces", "interfaces")):
            self.bus.ask(ref, ATSPI + "Accessible", method, None, learn(key))

    def _visit_children(self, ref: Ref, depth: int = 1) -> None:
        def then(answer: "GLib.Variant") -> None:
            for index, child in enumerate(answer.unpack()[0]):
                self._visit(tuple(child), ref, index, depth)

        self.bus.ask(ref, ATSPI + "Accessible", "GetChildren", None, then)

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
        question = GLib.Variant("(ss)", (ATSPI + "Application", "ToolkitName"))
        for program in programs:

            def then(answer: "GLib.Variant", program: str = program) -> None:
                found[program] = answer.unpack()[0]

            self.bus.ask((program, ROOT), PROPERTIES, "Get", question, then)
        self.bus.finish()
        return found

    def _ask(self, node: Node, toolkit: str) -> None:
        ask, ref = self.bus.ask, node.ref
        if "Component" in node.interfaces and {"showing", "visible"} <= node.states:
            kind = GLib.Variant("(u)", (SCREEN_COORDINATES,))
            ask(ref, ATSPI + "Component", "GetExtents", kind, lambda a: self._set(node, "box", a))
        if "Text" in node.interfaces:
            whole = GLib.Variant("(ii)", (0, -1))
            ask(ref, ATSPI + "Text", "GetText", whole, lambda a: self._set(node, "text", a))
        if "Value" in node.interfaces:
            about = GLib.Variant("(s)", (ATSPI + "Value",))
            ask(ref, PROPERTIES, "GetAll", about, lambda a: self._value(node, a))
        if "Action" in node.interfaces and "showing" in node.states:
            ask(ref, ATSPI + "Action", "GetActions", None, lambda a: self._actions(node, a))
        if toolkit in PLAIN_TOOLKITS:
            node.facts[named("attr", "toolkit")] = toolkit
        else:
            ask(ref, ATSPI + "Accessible", "GetAttributes", None, lambda a: self._attributes(node, a))

    def _set(self, node: Node, name: str, answer: "GLib.Variant") -> None:
        setattr(node, name, answer.unpack()[0])

    def _value(self, node: Node, answer: "GLib.Variant") -> None:
        words = {
            "CurrentValue": "value", "MinimumValue": "min", "MaximumValue": "max", "MinimumIncrement": "step",
        }  # fmt: skip
        for key, value in answer.unpack()[0].items():
            if key in words:
                node.facts[named("val", words[key])] = str(value)

    def _actions(self, node: Node, answer: "GLib.Variant") -> None:
        for name, description, keys in answer.unpack()[0]:
            if name:
                node.facts[named("act", f"{name}_desc")] = description
                node.facts[named("act", f"{name}_kb")] = keys

    def _attributes(self, node: Node, answer: "GLib.Variant") -> None:
        for key, value in answer.unpack()[0].items():
            node.facts[named("attr", key)] = value


def named(prefix: str, word: str) -> str:
    """XML name of an attribute; what XML does not allow becomes "-"."""
    plain = "".join(c if c.isalnum() or c in "_-." else "-" for c in word)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return f"{{{BASE}{PREFIXES[prefix]}}}{plain}"


@cache
def role_name(number: int) -> str:
    return Atspi.role_get_name(Atspi.Role(number)).replace(" ", "-") or "unknown"


@cache
def state_names(bits: tuple[int, ...]) -> frozenset[str]:
    """Names of the set bits; two numbers of 32 bits. Of hundreds of widgets a dozen differ."""
    whole = sum(part << 32 * place for place, part in enumerate(bits))
    return frozenset(name for number, name in STATES.items() if whole >> number & 1)


STATES = {
    number: Atspi.StateType(number).value_nick.replace("-", "_")
    for number in range(int(Atspi.StateType.LAST_DEFINED))
}
