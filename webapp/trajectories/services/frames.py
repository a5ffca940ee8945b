"""Screenshots as content-addressed files in the installation's storage.

    frames/ab/SHA.png         the lossless image that the model saw
    frames/ab/SHA.jpg         the same for viewing
    frames/ab/SHA.thumb.jpg   320 pixels wide

SHA is the sha256 of the PNG. A file appears under its name only when complete and never changes.
"""

import hashlib
from collections.abc import Iterable

from django.core.files.storage import default_storage
from PIL import Image

from training.untrusted.pictures import loaded, open_picture
from webapp.accounts.models import Team
from webapp.lib.media.media_files import is_bucket
from webapp.lib.statements.single_rows import insert_row
from webapp.trajectories.frame_files import frame_files
from webapp.trajectories.frame_files.contract import FileNames, FrameFile
from webapp.trajectories.frame_files.names import frame_path
from webapp.trajectories.models import Frame
from webapp.trajectories.screenshot_jpegs import jpeg_of, thumb_of
from webapp.trajectories.services.texts import text_names

VARIANTS = {"png": "image/png", "jpg": "image/jpeg", "thumb.jpg": "image/jpeg"}
"""File name ending -> content type."""
WRITTEN = ("jpg", "thumb.jpg", "png")
"""In this order."""


def store_frame(team: Team | int, png: bytes, image: Image.Image | None = None, sha256: str = "") -> str:
    """Keep a screenshot for a team (or its id) and return the sha256 of its PNG; repeating changes nothing.

    `image` is the decoded PNG and `sha256` its digest, where the caller has them. Files first, then the row:
    a row never names a file that is not there. Raises NotAPicture for bytes that are no whole PNG; those of
    files that are there were decoded when they were stored.
    """
    image = image or open_picture(png, formats=("PNG",))
    sha256 = sha256 or hashlib.sha256(png).hexdigest()
    write_files(png, image, sha256)
    record_frame(team, image, sha256)
    return sha256


def write_files(png: bytes, image: Image.Image, sha256: str) -> None:
    """The first half of `store_frame`. Raises StorageAway, NotAPicture."""

    def made() -> list[FrameFile]:
        whole = loaded(image)
        rgb = whole if whole.mode == "RGB" else whole.convert("RGB")
        bodies = {"jpg": jpeg_of(rgb), "thumb.jpg": thumb_of(rgb), "png": png}
        return [FrameFile(frame_path(sha256, one), bodies[one], VARIANTS[one]) for one in WRITTEN]

    frame_files().keep(_names(sha256), made)


def record_frame(team: Team | int, image: Image.Image, sha256: str) -> None:
    """The second half: the team has the frame, whose files are there. One statement."""
    team_id = team if isinstance(team, int) else team.pk
    values = {"team": team_id, "sha256": sha256, "width": image.width, "height": image.height}
    insert_row(Frame, **values, ignore_conflicts=True)


def frame_bytes(sha256: str) -> int:
    """Of all its files; 0 when they are gone."""
    return frame_files().num_bytes(_names(sha256))


def delete_unused_frames(sha256s: Iterable[str], unused_since: float) -> list[str]:
    """Remove the files of those that were not stored again after `unused_since` (seconds, wall clock).

    Returns which are gone. A screenshot or text that is stored in the same moment is whole afterwards.
    """
    wanted = list(sha256s)
    texts = set(Frame.objects.filter(sha256__in=wanted, width=0).values_list("sha256", flat=True))
    by_names = {text_names(sha) if sha in texts else _names(sha): sha for sha in wanted}
    return [by_names[names] for names in frame_files().delete_unused(list(by_names), unused_since)]


def frame_link(sha256: str, variant: str) -> tuple[str, int] | None:
    """A URL of the storage that opens the file without a sign-in, and for how many seconds; None where the
    storage makes none. The caller has checked who asks."""
    return frame_files().link(frame_path(sha256, variant), VARIANTS[variant])


def frames_folder() -> str:
    """Where this host's programs may read PNGs themselves, as ab/SHA.png; "" when they have to ask."""
    return "" if is_bucket() else default_storage.path("frames")


def _names(sha256: str) -> FileNames:
    return tuple(frame_path(sha256, variant) for variant in WRITTEN)
