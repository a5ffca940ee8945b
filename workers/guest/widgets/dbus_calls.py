"""Many calls at once on a D-Bus connection, in plain Python.

A widget tree takes thousands of small questions. They are written to the socket in one go and answered in any
order; a binding that makes an object of each takes several times as long as the programs that answer.
"""

import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Collection
from typing import Any

from workers.guest.widgets.dbus_values import (
    PATH,
    Answers,
    Ref,
    call_fields,
    field_of,
    readers,
    reply_fields,
)

BUS = "org.freedesktop.DBus"
MAX_MESSAGE = 32 << 20
CHUNK = 1 << 18
EAGER = 64
"""Calls that are sent while further ones are made: programs answer meanwhile."""
MANY, NAP_S = 32, 0.001
RETURN, ERROR = 2, 3
LITTLE = ord("l")
Answered = Callable[[Any], None]
NONE: tuple[Answers, Answered] = ({}, lambda _values: None)
"""Of an answer to no call."""
_HEAD = struct.Struct("<cBBBIII")
_LENGTHS = struct.Struct("<III").unpack_from


class BusError(Exception):
    """Raised when the bus cannot be reached or breaks off."""


class Connection:
    """Calls that wait for their answers together."""

    def __init__(self, address: str, limit_s: float, *, is_bus: bool = True) -> None:
        """Raises BusError where it does not answer in time. `is_bus`: calls go to a program by its name."""
        self._limit_s = limit_s
        self.is_bus = is_bus
        self._serial = 0
        self._out: list[bytes] = []
        self._waiting: dict[int, tuple[Answers, Answered]] = {}
        self._pending = memoryview(b"")
        self._buffer = bytearray()
        try:
            self._socket = _open(address)
            self._sign_in()
        except OSError as error:
            raise BusError(f"the bus at {address[:100]!r} does not answer: {error}") from error
        self._socket.setblocking(False)
        if is_bus:
            self.call((BUS, "/org/freedesktop/DBus"), BUS, "Hello", "", b"", readers("s"), lambda _name: None)

    @property
    def num_waiting(self) -> int:
        """Calls without an answer."""
        return len(self._waiting)

    @property
    def has_to_send(self) -> bool:
        return bool(self._pending or self._out)

    def fileno(self) -> int:
        return self._socket.fileno()

    def forget(self) -> None:
        """Wait for no answer any more."""
        self._waiting.clear()

    def close(self) -> None:
        self._socket.close()

    def _sign_in(self) -> None:
        self._socket.settimeout(self._limit_s)
        name = str(os.getuid()).encode().hex().encode()
        self._socket.sendall(b"\0AUTH EXTERNAL " + name + b"\r\n")
        said = b""
        while not said.endswith(b"\r\n"):
            said += (got := self._socket.recv(512))
            if not got or len(said) > 1024:
                break
        if not said.startswith(b"OK "):
            raise OSError("it refused this user")
        self._socket.sendall(b"BEGIN\r\n")

    def call(
        self, to: Ref, interface: str, method: str, signature: str, body: bytes, answers: Answers,
        then: Answered,
    ) -> None:  # fmt: skip
        """Ask `to`; `then(values)` runs in `finish`, for answers of these signatures alone."""
        self._serial += 1
        fields = call_fields(interface, method, signature, to[0] if self.is_bus else "")
        fields += field_of(PATH, "o", to[1])
        head = _HEAD.pack(b"l", 1, 0, 1, len(body), self._serial, len(fields))
        self._out.append(head + fields + bytes(-len(fields) & 7) + body)
        self._waiting[self._serial] = (answers, then)
        if len(self._out) == EAGER:
            with contextlib.suppress(BusError):  # `finish` will find out
                self.send()

    def send(self) -> None:
        """What the socket takes now. Raises BusError."""
        if not self._pending:
            self._pending, self._out = memoryview(b"".join(self._out)), []
        try:
            self._pending = self._pending[self._socket.send(self._pending) :]
        except BlockingIOError:
            return
        except OSError as error:
            raise BusError(f"the bus closed the connection: {error}") from error

    def receive(self) -> None:
        """What has come, answered. Raises BusError."""
        try:
            got = self._socket.recv(CHUNK)
        except OSError as error:
            raise BusError(f"the bus closed the connection: {error}") from error
        if not got:
            raise BusError("the bus closed the connection")
        self._buffer += got
        self._take(self._buffer)

    def _take(self, buffer: bytearray) -> None:
        """Whole messages at the start of the buffer. Raises BusError."""
        if len(buffer) < 16 or len(buffer) < sum(_lengths_of(buffer, 0)):
            return
        data, place = bytes(buffer), 0
        while len(data) - place >= 16:
            start, length = _lengths_of(data, place)
            if len(data) - place < start + length:
                break
            self._answer(data[place : place + start + length], start)
            place += start + length
        del buffer[:place]

    def _answer(self, message: bytes, start: int) -> None:
        if message[1] not in (RETURN, ERROR):
            return
        # A program that answers nonsense has said nothing.
        with contextlib.suppress(struct.error, IndexError, UnicodeDecodeError, ValueError):
            serial, signature = reply_fields(message)
            answers, then = self._waiting.pop(serial, NONE)
            if message[1] == RETURN and (read := answers.get(signature)) is not None:
                then(read(message, start)[0])


def finish(connections: Collection[Connection], limit_s: float) -> None:
    """Wait until every call, also those made meanwhile, is answered or too late. Raises BusError.

    A program's own socket that breaks off is forgotten.
    """
    deadline = time.monotonic() + limit_s
    while (open_ones := [one for one in connections if one.num_waiting]) and time.monotonic() < deadline:
        if sum(one.num_waiting for one in open_ones) > MANY and not any(one.has_to_send for one in open_ones):
            time.sleep(NAP_S)  # to wake up for every answer would keep programs from giving them
        unsent = [one for one in open_ones if one.has_to_send]
        readable, writable, _ = select.select(open_ones, unsent, [], max(0.0, deadline - time.monotonic()))
        for ready, step in ((writable, Connection.send), (readable, Connection.receive)):
            for connection in ready:
                try:
                    step(connection)
                except BusError:
                    connection.forget()
                    if connection.is_bus:
                        raise
    for connection in connections:
        connection.forget()


def _lengths_of(data: bytes | bytearray, place: int) -> tuple[int, int]:
    """(of the header, of the body) of the message that begins there. Raises BusError."""
    length, _, num_fields = _LENGTHS(data, place + 4)
    start = 16 + num_fields + (-num_fields & 7)
    if data[place] != LITTLE or start + length > MAX_MESSAGE:
        raise BusError("the bus sent a message that is too large, or of a foreign byte order")
    return start, length


def _open(address: str) -> socket.socket:
    """The first address that is a unix socket. Raises OSError."""
    for one in address.split(";"):
        kind, _, rest = one.partition(":")
        values = dict(part.partition("=")[::2] for part in rest.split(","))
        path = "\0" + values["abstract"] if "abstract" in values else values.get("path", "")
        if kind == "unix" and path:
            found = socket.socket(socket.AF_UNIX)
            found.connect(path)
            return found
    raise OSError("it names no unix socket")
