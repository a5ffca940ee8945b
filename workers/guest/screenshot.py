"""Tool: the screen as PNG on stdout, pointer included, as OSWorld's screenshots have it."""

import struct
import sys

import Xlib.display
from deskhand_input import open_display
from PIL import Image
from Xlib import X

from workers.guest.png_file import NONE, rgb_png


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


def main(_arguments: list[str]) -> int:
    display = open_display("XFIXES")
    image = capture(display)
    draw_pointer(display, image)
    sys.stdout.buffer.write(rgb_png(image.size, image.tobytes(), NONE))
    return 0
