"""Pictures that others made or stored: only formats of screenshots, and none that is too large, are decoded.

Pillow opens some fifty formats, one of which starts another program; the size in a file's first bytes says
what decoding would take.
"""

import io
from pathlib import Path

from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")
MAX_SIDE = 8192
MAX_PIXELS = 7680 * 4320
"""8K: 133 MB once it is decoded."""


class NotAPicture(ValueError):
    """Raised when bytes are no picture that may be decoded; the message says why."""


def open_picture(data: bytes | Path, *, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """The picture, not decoded yet: its format and size. Raises NotAPicture."""
    try:
        image = Image.open(io.BytesIO(data) if isinstance(data, bytes) else data, formats=formats)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise NotAPicture(f"not an image ({', '.join(formats)})") from error
    if max(image.size) > MAX_SIDE or image.width * image.height > MAX_PIXELS:
        raise NotAPicture(f"{image.width} x {image.height} pixels are too many")
    return image


def decode_picture(data: bytes | Path, *, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """The picture with its pixels. Raises NotAPicture, also for one that is cut off."""
    return loaded(open_picture(data, formats=formats))


def loaded(image: Image.Image) -> Image.Image:
    """An open picture with its pixels. Raises NotAPicture for one that is cut off."""
    try:
        image.load()
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, Image.DecompressionBombError) as error:
        raise NotAPicture(f"not a whole image: {error}") from error
    return image
