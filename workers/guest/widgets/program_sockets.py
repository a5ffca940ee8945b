"""The accessibility bus, and beside it programs' own sockets, which save the way through it."""

import contextlib
import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from workers.guest.widgets.dbus_calls import Answered, BusError, Connection, finish
from workers.guest.widgets.dbus_values import Answers, Ref, readers, text

ATSPI = "org.a11y.atspi."
ROOT = "/org/a11y/atspi/accessible/root"
CALL_LIMIT_S = 2.0
"""A program that hangs costs this at each kind of question; its part of the tree is left out."""
OWN_SOCKET_LIMIT_S = 0.2
REFS = readers("a(so)")
ONE_TEXT = readers("s")


class Bus:
    """Calls to all programs, each by its shortest way."""

    def __init__(self) -> None:
        """Raises BusError."""
        session = Connection(os.environ.get("DBUS_SESSION_BUS_ADDRESS", ""), CALL_LIMIT_S)
        address: list[str] = []
        about = ("org.a11y.Bus", "/org/a11y/bus")
        session.call(about, about[0], "GetAddress", "", b"", ONE_TEXT, address.extend)
        finish([session], CALL_LIMIT_S)
        session.close()
        if not address:
            raise BusError("no accessibility bus is known on the session bus")
        self._bus = Connection(address[0], CALL_LIMIT_S)
        self._own: dict[str, Connection] = {}
        self._addresses: dict[str, str] = {}
        # Programs keep the cache that brings their whole tree only while changes of it are listened for.
        registry = (ATSPI + "Registry", "/org/a11y/atspi/registry")
        event = text("object:children-changed:")
        wish = event + bytes(-len(event) % 4) + bytes(4) + text("")
        self.call(registry, registry[0], "RegisterEvent", "sass", wish, {}, lambda _answer: None)

    def call(
        self, to: Ref, interface: str, method: str, signature: str, body: bytes, answers: Answers,
        then: Answered,
    ) -> None:  # fmt: skip
        """As `Connection.call`, by the shortest way."""
        self._own.get(to[0], self._bus).call(to, interface, method, signature, body, answers, then)

    def finish(self) -> None:
        finish([self._bus, *self._own.values()], CALL_LIMIT_S)

    def programs(self) -> list[Ref]:
        """The roots of all programs that tell about their widgets. Raises BusError."""
        found: list[Ref] = []
        self.call(
            (ATSPI + "Registry", ROOT), ATSPI + "Accessible", "GetChildren", "", b"", REFS,
            lambda answer: found.extend(answer[0]),
        )  # fmt: skip
        self.finish()
        return found

    def come_closer(self, programs: Iterable[str]) -> None:
        """Use the sockets of those programs that have one, until `step_back`."""
        names = set(programs)
        self._addresses = {name: known for name, known in self._addresses.items() if name in names}
        for name in names - self._addresses.keys():
            to = (name, ROOT)
            then = partial(self._learn_address, name)
            self.call(to, ATSPI + "Application", "GetApplicationBusAddress", "", b"", ONE_TEXT, then)
        self.finish()
        for name, address in self._addresses.items():
            with contextlib.suppress(BusError):
                self._own[name] = Connection(address, OWN_SOCKET_LIMIT_S, is_bus=False)

    def _learn_address(self, name: str, answer: Any) -> None:
        self._addresses[name] = answer[0]

    def step_back(self) -> None:
        """Close them: a program sends every one that is open what happens to its widgets."""
        while self._own:
            self._own.popitem()[1].close()
