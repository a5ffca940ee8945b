"""Screen pixels as images: from an X server's rows to the PNG that the model sees."""

import hashlib
import io

from PIL import Image

from training.untrusted.pictures import open_picture

PNG_LEVEL = 1
"""Level 6 halves the size and doubles the time; the time is paid on every turn."""


def image_of(pixels: bytes, width: int, height: int) -> Image.Image:
    """BGRX rows from an X server -> RGB image."""
    return Image.frombytes("RGB", (width, height), pixels, "raw", "BGRX")


def png_of(image: Image.Image) -> bytes:
    """Lossless PNG, deterministic for equal pixels."""
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=PNG_LEVEL)
    return out.getvalue()


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
