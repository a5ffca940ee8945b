"""Screen pixels as images: from an X server's rows to the PNG that the model sees."""

import hashlib
import struct
import zlib

from PIL import Image, ImageChops

from training.untrusted.pictures import open_picture

PNG_LEVEL = 1
"""Level 6 halves the size and doubles the time; the time is paid on every turn."""
UP = b"\2"
"""The filter of a row that holds differences to the row above."""


def image_of(pixels: bytes, width: int, height: int) -> Image.Image:
    """BGRX rows from an X server -> RGB image."""
    return Image.frombytes("RGB", (width, height), pixels, "raw", "BGRX")


def png_of(image: Image.Image) -> bytes:
    """Lossless PNG of an RGB image, deterministic for equal pixels.

    Pillow tries five filters on each row: twice the time of one for all, and as many bytes, within a tenth.
    """
    above = Image.new("RGB", image.size)
    above.paste(image, (0, 1))
    rows, width = ImageChops.subtract_modulo(image, above).tobytes(), 3 * image.width
    filtered = b"".join(UP + rows[start : start + width] for start in range(0, len(rows), width))
    header = struct.pack(">IIBBBBB", *image.size, 8, 2, 0, 0, 0)  # eight bits of each of three colours
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered, PNG_LEVEL)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def open_png(png: bytes) -> Image.Image:
    """RGB image of a PNG."""
    return open_picture(png).convert("RGB")


def digest(image: Image.Image) -> str:
    """Fast fingerprint of the visible pixels; X's fourth byte is not one of them and changes at random."""
    return hashlib.sha1(image.tobytes(), usedforsecurity=False).hexdigest()


def small_grey(image: Image.Image) -> Image.Image:
    """The picture in grey at 64 x 64, as Slime-OSWorld's `screen_diff` makes it."""
    return image.convert("L").resize((64, 64), Image.Resampling.BILINEAR)


def sha256(data: bytes) -> str:
    """Content address of a stored frame."""
    return hashlib.sha256(data).hexdigest()
