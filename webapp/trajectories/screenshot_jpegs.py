"""Screenshots as people look at them: a JPEG and a thumbnail."""

from io import BytesIO

from PIL import Image

JPEG_QUALITY = 80
THUMB_WIDTH = 320
"""Pixels."""


def jpeg_of(image: Image.Image) -> bytes:
    """The whole screen as a JPEG."""
    out = BytesIO()
    image.save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()


def thumb_of(image: Image.Image) -> bytes:
    """A JPEG of THUMB_WIDTH pixels width; smaller screens keep their size."""
    if image.width > THUMB_WIDTH:
        height = max(1, round(image.height * THUMB_WIDTH / image.width))
        image = image.resize((THUMB_WIDTH, height), Image.Resampling.BOX)
    return jpeg_of(image)
