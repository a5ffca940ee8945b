"""Screenshots as content-addressed files behind Django's storage API.

    frames/ab/SHA.png         the lossless image that the model saw
    frames/ab/SHA.jpg         the same for viewing
    frames/ab/SHA.thumb.jpg   320 pixels wide

SHA is the sha256 of the PNG. A file appears under its name only when complete and never changes.
"""

import hashlib
import os
import re
import secrets
from io import BytesIO
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, default_storage
from PIL import Image

from webapp.accounts.models import Team
from webapp.trajectories.models import Frame
from webapp.trajectories.screenshot_jpegs import jpeg_of, thumb_of

SHA256 = re.compile(r"^[0-9a-f]{64}$")
VARIANTS = {"png": "image/png", "jpg": "image/jpeg", "thumb.jpg": "image/jpeg"}
"""File name ending -> content type."""


def frame_path(sha256: str, variant: str = "png") -> str:
    """Storage name of a frame's file. Raises ValueError when `sha256` is not a digest."""
    if not SHA256.match(sha256):
        raise ValueError(f"not a sha256: {sha256!r}")
    return f"frames/{sha256[:2]}/{sha256}.{variant}"


def store_frame(team: Team | int, png: bytes, image: Image.Image | None = None, sha256: str = "") -> str:
    """Keep a screenshot for a team (or its id) and return the sha256 of its PNG; repeating changes nothing.

    `image` is the decoded PNG and `sha256` its digest, where the caller has them. Files first, then the row:
    a row never names a file that is not there.
    """
    team_id = team if isinstance(team, int) else team.pk
    image = image or Image.open(BytesIO(png))
    sha256 = sha256 or hashlib.sha256(png).hexdigest()
    if not default_storage.exists(frame_path(sha256)):  # the last that is written
        rgb = image if image.mode == "RGB" else image.convert("RGB")
        for variant, body in (("jpg", jpeg_of(rgb)), ("thumb.jpg", thumb_of(rgb)), ("png", png)):
            _write_once(default_storage, frame_path(sha256, variant), body)
    Frame.objects.bulk_create(
        [Frame(team_id=team_id, sha256=sha256, width=image.width, height=image.height)], ignore_conflicts=True
    )
    return sha256


def read_frame(sha256: str, variant: str = "png") -> bytes:
    """The file's bytes. Raises FileNotFoundError."""
    with default_storage.open(frame_path(sha256, variant), "rb") as file:
        return bytes(file.read())


def _write_once(storage: Storage, name: str, body: bytes) -> None:
    """Write `body` under `name` unless it is there; atomic on a local folder."""
    if storage.exists(name):
        return
    if not isinstance(storage, FileSystemStorage):
        storage.save(name, ContentFile(body))
        return
    path = Path(storage.path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        draft.write_bytes(body)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
