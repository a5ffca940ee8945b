"""The proxy's handshake with a desktop's VNC server."""

from collections.abc import Awaitable, Callable

from webapp.screens.rfb.protocol import (
    MAX_NAME,
    MAX_SIDE,
    SECURITY_NONE,
    SERVER_INIT_LENGTH,
    SHARED,
    VERSION,
    VERSION_LENGTH,
    RfbError,
)

Read = Callable[[int], Awaitable[bytes]]
"""Reads that number of bytes; raises EOFError or OSError when the server is gone."""
Write = Callable[[bytes], Awaitable[None]]


async def greet_desktop(read: Read, write: Write, *, name: str) -> bytes:
    """Open an RFB connection; returns its ServerInit with `name` in place of the server's own.

    Raises RfbError when the server wants another version or a password, and for what no desktop says: a
    program inside may have put another server in the place of ours.
    """
    version = await read(VERSION_LENGTH)
    if not version.startswith(b"RFB 003.") or version < VERSION:
        raise RfbError(f"the desktop's VNC server speaks {version!r}, not RFB 3.8")
    await write(VERSION)
    count = (await read(1))[0]
    if SECURITY_NONE not in await read(count):
        raise RfbError("the desktop's VNC server asks for a password")
    await write(bytes([SECURITY_NONE]))
    if await read(4) != bytes(4):
        raise RfbError("the desktop's VNC server refused the connection")
    await write(SHARED)
    start = await read(SERVER_INIT_LENGTH)
    width, height = int.from_bytes(start[0:2], "big"), int.from_bytes(start[2:4], "big")
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise RfbError(f"the desktop says that its screen has {width} x {height} pixels")
    length = int.from_bytes(start[20:24], "big")
    if length > MAX_NAME:
        raise RfbError(f"the desktop's name has {length} bytes")
    await read(length)
    shown = name.encode()[:MAX_NAME]
    return start[:20] + len(shown).to_bytes(4, "big") + shown
