"""Images of an imported line -> stored frames."""

import binascii
import hashlib
from base64 import b64decode
from dataclasses import dataclass
from io import BytesIO

from training.untrusted.pictures import FORMATS, NotAPicture, decode_picture
from webapp.accounts.models import Team
from webapp.trajectories.models import Frame
from webapp.trajectories.services.frames import store_frame

READ_FORMATS = (*FORMATS, "GIF", "BMP")
SHA_PREFIX = "sha256:"


class ImageProblem(ValueError):
    """Raised when an image of a line cannot be used; the message names the field."""


@dataclass(frozen=True)
class StoredImage:
    """A frame that the team has, or will have."""

    sha256: str
    width: int
    height: int


def read_image(team: Team, text: str, where: str, *, is_kept: bool) -> StoredImage:
    """A data URL, bare base64, or `sha256:` of a frame that the team has; stored when `is_kept`."""
    if text.startswith(SHA_PREFIX):
        frame = Frame.objects.filter(team=team, sha256=text.removeprefix(SHA_PREFIX)).first()
        if frame is None:
            raise ImageProblem(f"{where}: no frame {text[:20]}… here; export again with images inside")
        return StoredImage(frame.sha256, frame.width, frame.height)
    try:
        body = b64decode(text.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageProblem(f"{where}: not base64") from error
    png, width, height = as_png(body, where)
    sha = hashlib.sha256(png).hexdigest()
    if is_kept:
        store_frame(team, png, sha256=sha)  # also one that is here: pruning may be about to remove it
    return StoredImage(sha, width, height)


def as_png(body: bytes, where: str) -> tuple[bytes, int, int]:
    """The bytes as they are when they are a PNG, else converted: (png, width, height)."""
    try:
        image = decode_picture(body, formats=READ_FORMATS)
    except NotAPicture as error:
        raise ImageProblem(f"{where}: {error}") from error
    if image.format == "PNG":
        return body, image.width, image.height
    out = BytesIO()
    image.convert("RGB").save(out, "PNG")
    return out.getvalue(), image.width, image.height
