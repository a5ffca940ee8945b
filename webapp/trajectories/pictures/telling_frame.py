"""Which screen of a trajectory lists show: when it is over, its window is often gone."""

from functools import lru_cache

from PIL import ImageFilter

from training.untrusted.pictures import open_picture
from webapp.trajectories.frame_files import read_frame

MAX_LOOKED_AT = 24
"""The newest different screens; the beginning of a long trajectory tells little of its end."""
EDGE = 48
"""Of 255: a border or a letter, but not the slopes of a wallpaper photograph."""
MUCH = 0.7
"""Screens with this share of the largest detail tell as much; the newest of them is shown."""


def most_telling(frames: list[str]) -> str:
    """The newest of the screens (sha256, in order, some "") that show much; "" when there is none."""
    newest = list(dict.fromkeys(frame for frame in reversed(frames) if frame))[:MAX_LOOKED_AT]
    if len(newest) < 2:
        return newest[0] if newest else ""
    details = {frame: _detail_of(frame) for frame in newest}
    enough = MUCH * max(details.values())
    return next(frame for frame in newest if details[frame] >= enough)


@lru_cache(maxsize=4096)
def _detail_of(frame: str) -> float:
    """Of a stored screen; many trajectories share their first ones."""
    return detail(read_frame(frame, "thumb.jpg"))


def detail(jpeg: bytes) -> float:
    """Share of pixels that lie on a sharp edge, as of windows and text, 0 to 1."""
    edges = open_picture(jpeg).convert("L").filter(ImageFilter.FIND_EDGES)
    inner = edges.crop((1, 1, max(edges.width - 1, 2), max(edges.height - 1, 2)))  # none on the rim
    histogram = inner.histogram()
    return sum(histogram[EDGE:]) / sum(histogram)
