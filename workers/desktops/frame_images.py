"""Screen pixels as images: from an X server's rows to the PNG that the model sees."""

import hashlib

from PIL import Image, ImageChops

from training.untrusted.pictures import open_picture
from workers.guest.png_file import UP, rgb_png


def image_of(pixels: bytes, width: int, height: int) -> Image.Image:
    """BGRX rows from an X server -> RGB image."""
    return Image.frombytes("RGB", (width, height), pixels, "raw", "BGRX")


def png_of(image: Image.Image) -> bytes:
    """Lossless PNG of an RGB image, deterministic for equal pixels.

    Pillow tries five filters on each row: twice the time of one for all, and as many bytes, within a tenth.
    """
    above = Image.new("RGB", image.size)
    above.paste(image, (0, 1))
    return rgb_png(image.size, ImageChops.subtract_modulo(image, above).tobytes(), UP)


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
