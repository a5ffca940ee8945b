"""A connection from the web process to a desktop's VNC server, opened by the env worker's relay."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress

from webapp.screens.relay_tickets import make_ticket
from webapp.screens.rfb.desktop_handshake import Read, Write, greet_desktop
from webapp.screens.rfb.protocol import RfbError

OPEN_LIMIT_S = 10.0
CONNECT_LIMIT_S = 3.0
WRITE_LIMIT_S = 10.0
CHUNK = 1 << 18
ACCEPTED, REFUSED = b"ok\n", b"no "
MAX_ANSWER = 200
PASS = b"pass "


class NoScreen(Exception):
    """Raised when a desktop's screen cannot be reached; the message says why, without addresses."""


class Link:
    """Open, past the handshake. Bytes wait in socket buffers only.

    One reader at a time. The event loop is asked once to watch the socket, not once per read: updates come
    in few large pieces, and what is done around each of them is most of what a viewer costs.
    """

    def __init__(self, server_init: bytes, desktop: socket.socket, relay: socket.socket | None) -> None:
        self.server_init = server_init
        """What the browser gets in answer to its ClientInit."""
        self._loop = asyncio.get_running_loop()
        self._desktop = desktop
        self._relay = relay
        """The connection that brought the socket; its end means that the desktop is no longer ours."""
        self._reading: asyncio.Future[bytes] | None = None
        self._is_watched = False
        if relay is not None:
            self._loop.add_reader(relay, self._relay_ended)

    async def read(self) -> bytes:
        """The next bytes of the desktop; b"" when it is gone."""
        if self._desktop.fileno() < 0:
            return b""
        self._reading = self._loop.create_future()
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._desktop, self._readable)
        return await self._reading

    def _readable(self) -> None:
        if self._reading is None or self._reading.done():  # the browser has not taken what came before
            self._is_watched = False
            self._loop.remove_reader(self._desktop)
            return
        try:
            self._reading.set_result(self._desktop.recv(CHUNK))
        except BlockingIOError:
            return
        except OSError:
            self._reading.set_result(b"")

    def _relay_ended(self) -> None:
        """Cut by the env worker, or it has died: then nothing else would cut this connection."""
        assert self._relay is not None
        self._loop.remove_reader(self._relay)
        with suppress(OSError):
            self._desktop.shutdown(socket.SHUT_RDWR)

    async def write(self, data: bytes) -> None:
        """Give bytes to the desktop, waiting while it does not take them. Raises NoScreen."""
        try:
            with suppress(BlockingIOError):
                data = data[self._desktop.send(data) :]
            if data:
                async with asyncio.timeout(WRITE_LIMIT_S):
                    await self._loop.sock_sendall(self._desktop, data)
        except (OSError, TimeoutError) as error:
            raise NoScreen("the desktop takes no more input") from error

    def close(self) -> None:
        """At once, without waiting for what was not sent. Idempotent."""
        for connection in (self._desktop, self._relay):
            if connection is not None and connection.fileno() >= 0:
                self._loop.remove_reader(connection)
                connection.close()
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(b"")


async def open_link(trajectory_id: int, addresses: Sequence[str], *, name: str) -> Link:
    """Reach the desktop of a trajectory. Raises NoScreen."""
    try:
        async with asyncio.timeout(OPEN_LIMIT_S):
            relay = await _connect(addresses)
            return await _enter(trajectory_id, relay, name)
    except (OSError, EOFError, TimeoutError) as error:
        raise NoScreen("the host of the desktop does not answer") from error
    except RfbError as error:
        raise NoScreen(str(error)) from error


async def _connect(addresses: Sequence[str]) -> socket.socket:
    """The first address that answers. Raises OSError."""
    problem: OSError = OSError("no address")
    for address in addresses:
        kind, _, place = address.partition(":")
        host, _, port = place.rpartition(":")
        family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                where = place if kind == "unix" else (host, int(port))
                await asyncio.get_running_loop().sock_connect(connection, where)
            if kind == "tcp":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:  # also of a unix socket that is on another machine
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
    raise problem


async def _enter(trajectory_id: int, relay: socket.socket, name: str) -> Link:
    """Show the ticket; on the same machine the relay answers with the desktop's socket itself."""
    is_local = relay.family == socket.AF_UNIX
    desktop = relay
    try:
        ticket = make_ticket(trajectory_id).encode() + b"\n"
        await asyncio.get_running_loop().sock_sendall(relay, PASS + ticket if is_local else ticket)
        desktop = await _receive_socket(relay) if is_local else await _accepted(relay)
        server_init = await greet_desktop(*_exact(desktop), name=name)
        return Link(server_init, desktop, relay if is_local else None)
    except BaseException:
        desktop.close()
        relay.close()
        raise


async def _receive_socket(relay: socket.socket) -> socket.socket:
    """The socket that the relay connected to the desktop. Raises OSError."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(relay, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(relay)
    answer, descriptors, _, _ = socket.recv_fds(relay, MAX_ANSWER, 1)
    _require_accepted(answer)
    if not descriptors:
        raise OSError("no socket came")
    desktop = socket.socket(fileno=descriptors[0])
    desktop.setblocking(False)
    desktop.set_inheritable(False)
    return desktop


async def _accepted(relay: socket.socket) -> socket.socket:
    """The relay's own connection, that stands for the desktop's from now on. Raises OSError, EOFError."""
    read, _ = _exact(relay)
    answer = b""
    while not answer.endswith(b"\n") and len(answer) < MAX_ANSWER:
        answer += await read(1)
    _require_accepted(answer)
    return relay


def _require_accepted(answer: bytes) -> None:
    """Raises NoScreen with what the relay refused for, OSError when it said nothing."""
    if answer.startswith(REFUSED):
        why = answer.removeprefix(REFUSED).decode(errors="replace").strip()
        raise NoScreen(f"the host refused: {why}")
    if answer != ACCEPTED:
        raise OSError("the relay closed the connection")


def _exact(connection: socket.socket) -> tuple[Read, Write]:
    """Reads exactly as many bytes as asked for, writes all of them."""
    loop = asyncio.get_running_loop()

    async def read(length: int) -> bytes:
        found = b""
        while len(found) < length:
            data = await loop.sock_recv(connection, length - len(found))
            if not data:
                raise EOFError
            found += data
        return found

    async def write(data: bytes) -> None:
        await loop.sock_sendall(connection, data)

    return read, write
