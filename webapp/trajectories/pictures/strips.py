"""A trajectory in one small picture: some of its screens side by side."""

from PIL import Image

from training.untrusted.pictures import open_picture
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory
from webapp.trajectories.screenshot_jpegs import jpeg_of

HEIGHT = 180
GAP = 6
"""Pixels."""


def screens_across(trajectory: Trajectory, number: int) -> list[str]:
    """At most `number` different neighbours among its screens (sha256), from the first to the last."""
    seen = [*trajectory.turns.exclude(frame="").values_list("frame", flat=True), trajectory.last_frame]
    frames = [after for before, after in zip(["", *seen], seen, strict=False) if before != after]
    last = len(frames) - 1
    number = min(number, len(frames))
    return [frames[round(last * place / max(number - 1, 1))] for place in range(number)]


def strip_of(frames: list[str]) -> bytes | None:
    """The screens side by side as a JPEG; None without any. Raises FileNotFoundError, StorageAway."""
    screens = [open_picture(read_frame(frame, "thumb.jpg")).convert("RGB") for frame in frames]
    if not screens:
        return None
    tiles = [screen.resize((max(1, screen.width * HEIGHT // screen.height), HEIGHT)) for screen in screens]
    width = sum(tile.width for tile in tiles) + GAP * (len(tiles) - 1)
    strip = Image.new("RGB", (width, HEIGHT), "white")
    left = 0
    for tile in tiles:
        strip.paste(tile, (left, 0))
        left += tile.width + GAP
    return jpeg_of(strip)
