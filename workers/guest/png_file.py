"""PNG files without Pillow's choice of a filter for each row: choosing takes longer than it saves."""

import struct
import zlib

NONE, UP = b"\0", b"\2"
"""What rows hold: pixels, or differences to the row above."""
LEVEL = 1
"""Level 6 halves the size and doubles the time, which every turn pays: half a second under emulation."""


def rgb_png(size: tuple[int, int], rows: bytes, kind: bytes) -> bytes:
    """The file of (width, height) rows of 3 bytes a pixel, all of one kind."""
    width = 3 * size[0]
    lines = b"".join(kind + rows[start : start + width] for start in range(0, len(rows), width))
    header = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)  # eight bits of each of three colours
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, LEVEL)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
