"""A connection from the web process to a desktop's VNC server, through the env worker's relay."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.screens.rfb.desktop_side import greet_desktop
from webapp.screens.rfb.protocol import RfbError
from webapp.screens.tokens import make_ticket

OPEN_LIMIT_S = 10.0
CONNECT_LIMIT_S = 3.0
WRITE_LIMIT_S = 10.0
CHUNK = 1 << 18
ACCEPTED = b"ok\n"


class NoScreen(Exception):
    """Raised when a desktop's screen cannot be reached; the message says why, without addresses."""


@dataclass(slots=True)
class Link:
    """Open, past the handshake. Bytes wait in socket buffers only."""

    server_init: bytes
    """What the browser is told in answer to its ClientInit."""
    _socket: socket.socket

    async def read(self) -> bytes:
        """The next bytes of the desktop; b"" when it is gone."""
        try:
            return await asyncio.get_running_loop().sock_recv(self._socket, CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Give bytes to the desktop, waiting while it does not take them. Raises NoScreen."""
        try:
            async with asyncio.timeout(WRITE_LIMIT_S):
                await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except (OSError, TimeoutError) as error:
            raise NoScreen("the desktop takes no more input") from error

    def close(self) -> None:
        """At once, without waiting for what was not sent. Idempotent."""
        self._socket.close()


async def open_link(trajectory_id: int, addresses: Sequence[str], *, name: str) -> Link:
    """Reach the desktop of a trajectory. Raises NoScreen."""
    try:
        async with asyncio.timeout(OPEN_LIMIT_S):
            connection = await _connect(addresses)
            return await _enter(trajectory_id, connection, name)
    except (OSError, EOFError, TimeoutError) as error:
        raise NoScreen("the desktop does not answer") from error
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


async def _enter(trajectory_id: int, connection: socket.socket, name: str) -> Link:
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

    try:
        await write(make_ticket(trajectory_id).encode() + b"\n")
        if await read(len(ACCEPTED)) != ACCEPTED:
            raise OSError("refused")
        server_init = await greet_desktop(read, write, name=name)
    except BaseException:
        connection.close()
        raise
    return Link(server_init, connection)
