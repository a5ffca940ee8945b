"""Tool: the screen as PNG on stdout, pointer included, as OSWorld's screenshots have it."""

import struct
import sys
import zlib

import Xlib.display
from deskhand_input import open_display
from PIL import Image
from Xlib import X

COMPRESSION = 1
"""Under emulation a better one costs half a second and saves a third."""


def capture(display: Xlib.display.Display) -> Image.Image:
    """The whole screen, RGB."""
    screen = display.screen()
    width, height = screen.width_in_pixels, screen.height_in_pixels
    data = screen.root.get_image(0, 0, width, height, X.ZPixmap, 0xFFFFFFFF).data
    return Image.frombuffer("RGB", (width, height), data, "raw", "BGRX", 0, 1)


def draw_pointer(display: Xlib.display.Display, image: Image.Image) -> None:
    """Put the pointer's picture where it is."""
    if not display.has_extension("XFIXES"):
        return
    display.xfixes_query_version()
    pointer = display.xfixes_get_cursor_image(display.screen().root)
    # Each pixel is ARGB in 32 bits, colours multiplied by their opacity already.
    raw = struct.pack(
        f"<{len(pointer.cursor_image)}I", *(value & 0xFFFFFFFF for value in pointer.cursor_image)
    )
    sprite = Image.frombytes("RGBA", (pointer.width, pointer.height), raw, "raw", "BGRa")
    image.paste(sprite, (pointer.x - pointer.xhot, pointer.y - pointer.yhot), sprite)


def png(image: Image.Image) -> bytes:
    """Unfiltered rows: a desktop is flat areas, and choosing filters costs more than it saves."""
    width, height = image.size
    raw, row = image.tobytes(), width * 3
    rows = b"".join(b"\0" + raw[start : start + row] for start in range(0, height * row, row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, COMPRESSION)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def main(_arguments: list[str]) -> int:
    display = open_display("XFIXES")
    image = capture(display)
    draw_pointer(display, image)
    sys.stdout.buffer.write(png(image))
    return 0
