"""A picture that came over the network -> the frame that is recorded and shown to the policy."""

from training.untrusted.pictures import NotAPicture, decode_picture
from workers.desktops.contract import EnvError
from workers.desktops.frame import Frame

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def frame_of(data: bytes, *, lossless_only: bool = False) -> Frame:
    """A PNG is kept as it is, anything else becomes one. Raises EnvError when it is no picture."""
    if lossless_only and not data.startswith(PNG_MAGIC):
        raise EnvError("the screenshot is not a PNG")
    try:
        image = decode_picture(data).convert("RGB")
    except NotAPicture as error:
        raise EnvError(f"the screenshot is no picture ({len(data)} bytes): {error}") from error
    return Frame.of(image, data if data.startswith(PNG_MAGIC) else b"")
