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
    image = image or Image.open(BytesIO(png))
    sha256 = sha256 or hashlib.sha256(png).hexdigest()
    write_files(png, image, sha256)
    record_frame(team, image, sha256)
    return sha256


def write_files(png: bytes, image: Image.Image, sha256: str) -> None:
    """The first half of `store_frame`."""
    if _is_kept(frame_path(sha256)):  # the last that is written
        return
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    for variant, body in (("jpg", jpeg_of(rgb)), ("thumb.jpg", thumb_of(rgb)), ("png", png)):
        _write_once(default_storage, frame_path(sha256, variant), body)


def record_frame(team: Team | int, image: Image.Image, sha256: str) -> None:
    """The second half: the team has the frame, whose files are there. One statement."""
    team_id = team if isinstance(team, int) else team.pk
    row = Frame(team_id=team_id, sha256=sha256, width=image.width, height=image.height)
    Frame.objects.bulk_create([row], ignore_conflicts=True)


def _is_kept(name: str) -> bool:
    """Whether the file is there; its time is set anew, so that no clean-up takes it for unused."""
    if not isinstance(default_storage, FileSystemStorage):
        return default_storage.exists(name)
    try:
        os.utime(default_storage.path(name))
    except FileNotFoundError:
        return False
    return True


def frame_bytes(sha256: str) -> int:
    """Of all its files; 0 when they are gone."""
    names = [frame_path(sha256, variant) for variant in VARIANTS]
    return sum(default_storage.size(name) for name in names if default_storage.exists(name))


def delete_unused_frame(sha256: str, unused_since: float) -> bool:
    """Remove its files unless they were stored again after `unused_since` (seconds, wall clock).

    The PNG is what `store_frame` looks at: it is put aside first and looked at once more, so that a
    screenshot that is stored in the same moment is either put back or written anew.
    """
    png = Path(default_storage.path(frame_path(sha256)))
    aside = png.with_name(f".{png.name}.unused")
    try:
        if png.stat().st_mtime > unused_since:
            return False
        png.rename(aside)
        if aside.stat().st_mtime > unused_since:
            aside.rename(png)
            return False
    except FileNotFoundError:
        pass
    for variant in VARIANTS:
        if variant != "png":
            default_storage.delete(frame_path(sha256, variant))
    aside.unlink(missing_ok=True)
    return True


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
