"""A connection from the web process to a desktop's VNC server, through the env worker's relay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.screens.rfb.desktop_side import greet_desktop
from webapp.screens.rfb.protocol import RfbError
from webapp.screens.tokens import make_ticket

OPEN_LIMIT_S = 10.0
CONNECT_LIMIT_S = 3.0
WRITE_LIMIT_S = 10.0
CHUNK = 1 << 16
ACCEPTED = b"ok\n"


class NoScreen(Exception):
    """Raised when a desktop's screen cannot be reached; the message says why, without addresses."""


@dataclass(slots=True)
class Link:
    """Open, past the handshake."""

    server_init: bytes
    """What the browser is told in answer to its ClientInit."""
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    async def read(self) -> bytes:
        """The next bytes of the desktop; b"" when it is gone."""
        try:
            return await self._reader.read(CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Give bytes to the desktop, waiting while it does not take them."""
        try:
            self._writer.write(data)
            async with asyncio.timeout(WRITE_LIMIT_S):
                await self._writer.drain()
        except (OSError, TimeoutError) as error:
            raise NoScreen("the desktop takes no more input") from error

    def close(self) -> None:
        """At once, without waiting for what was not sent. Idempotent."""
        self._writer.transport.abort()


async def open_link(trajectory_id: int, addresses: Sequence[str], *, name: str) -> Link:
    """Reach the desktop of a trajectory. Raises NoScreen."""
    try:
        async with asyncio.timeout(OPEN_LIMIT_S):
            reader, writer = await _connect(addresses)
            return await _enter(trajectory_id, reader, writer, name)
    except (OSError, EOFError, TimeoutError) as error:
        raise NoScreen("the desktop does not answer") from error
    except RfbError as error:
        raise NoScreen(str(error)) from error


async def _connect(addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The first address that answers. Raises OSError."""
    problem: OSError = OSError("no address")
    for address in addresses:
        kind, _, place = address.partition(":")
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                if kind == "unix":
                    return await asyncio.open_unix_connection(place)
                host, _, port = place.rpartition(":")
                return await asyncio.open_connection(host, int(port))
        except OSError as error:  # also of a unix socket that is on another machine
            problem = error
    raise problem


async def _enter(
    trajectory_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str
) -> Link:
    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    try:
        await write(make_ticket(trajectory_id).encode() + b"\n")
        if await reader.readexactly(len(ACCEPTED)) != ACCEPTED:
            raise OSError("refused")
        server_init = await greet_desktop(reader.readexactly, write, name=name)
    except BaseException:
        writer.transport.abort()
        raise
    return Link(server_init, reader, writer)
