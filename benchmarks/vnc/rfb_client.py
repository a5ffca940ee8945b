"""A viewer without a window: an RFB client over a WebSocket that asks for raw pixels and keeps the picture.

The same client measures every proxy, so it takes no part in the difference between them.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

RAW = 0
BYTES_PER_PIXEL = 4
OPEN_LIMIT_S = 60


@dataclass(slots=True)
class RfbViewer:
    """One connection; `picture` is BGRX rows."""

    socket: ClientConnection
    width: int = 0
    height: int = 0
    picture: bytearray = field(default_factory=bytearray)
    waiting: bytearray = field(default_factory=bytearray)
    num_bytes: int = 0

    @classmethod
    async def open(cls, url: str, **options: Any) -> RfbViewer:
        """Connect, greet, choose the encoding. `options` go to websockets."""
        socket = await connect(
            url, compression=None, max_size=None, open_timeout=OPEN_LIMIT_S, ping_interval=None, **options
        )
        viewer = cls(socket)
        await viewer.greet()
        return viewer

    async def greet(self) -> None:
        await self.read(12)
        await self.socket.send(b"RFB 003.008\n")
        await self.read((await self.read(1))[0])
        await self.socket.send(b"\x01")
        await self.read(4)
        await self.socket.send(b"\x01")
        start = await self.read(24)
        self.width, self.height = struct.unpack(">HH", start[:4])
        await self.read(struct.unpack(">I", start[20:])[0])
        self.picture = bytearray(self.width * self.height * BYTES_PER_PIXEL)
        pixel_format = struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
        await self.socket.send(b"\0\0\0\0" + pixel_format + struct.pack(">BxHi", 2, 1, RAW))

    async def read(self, length: int) -> bytes:
        """Exactly so many bytes. Raises websockets' ConnectionClosed."""
        while len(self.waiting) < length:
            data = await self.socket.recv()
            assert isinstance(data, bytes)
            self.num_bytes += len(data)
            self.waiting += data
        found = bytes(self.waiting[:length])
        del self.waiting[:length]
        return found

    async def ask(self, *, incremental: bool) -> None:
        """Request an update of the whole screen."""
        await self.socket.send(struct.pack(">BBHHHH", 3, int(incremental), 0, 0, self.width, self.height))

    async def update(self) -> None:
        """Read messages up to and including the next update, and paint it."""
        while (await self.read(1))[0] != 0:
            raise ValueError("the server said something that nobody asked for")
        for _ in range(struct.unpack(">xH", await self.read(3))[0]):
            x, y, width, height, encoding = struct.unpack(">HHHHi", await self.read(12))
            assert encoding == RAW, f"encoding {encoding}"
            self.paint(x, y, width, height, await self.read(width * height * BYTES_PER_PIXEL))

    def paint(self, x: int, y: int, width: int, height: int, pixels: bytes) -> None:
        row = width * BYTES_PER_PIXEL
        for line in range(height):
            start = ((y + line) * self.width + x) * BYTES_PER_PIXEL
            self.picture[start : start + row] = pixels[line * row : (line + 1) * row]

    def colour_at(self, x: int, y: int) -> int:
        """0xRRGGBB."""
        start = (y * self.width + x) * BYTES_PER_PIXEL
        blue, green, red = self.picture[start : start + 3]
        return red << 16 | green << 8 | blue

    async def close(self) -> None:
        async with asyncio.timeout(OPEN_LIMIT_S):
            await self.socket.close()
