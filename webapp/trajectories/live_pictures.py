"""Screens on their way to those who watch, before they are recorded."""

from PIL import Image

from webapp.live.broadcast import is_watched, send_picture
from webapp.trajectories.screenshot_jpegs import jpeg_of
from webapp.trajectories.services.announcements import stream_of

SMALL_WIDTH = 800
"""Pixels; up to it the lossless PNG is smaller than the JPEG (as in static/js/lib/frame_images.js)."""


def show_screen(
    *, trajectory_id: int, index: int, sha256: str, png: bytes, image: Image.Image, observed_at: float
) -> None:
    """Send the screen of turn `index` to the viewers of its trajectory, if there are any.

    `turn.added` follows once the turn is recorded; until then it is a picture and no more. `observed_at` is
    in seconds of the wall clock.
    """
    stream = stream_of(trajectory_id)
    if not is_watched(stream):
        return
    is_small = image.width <= SMALL_WIDTH
    head: dict[str, object] = {
        "index": index,
        "frame": sha256,
        "width": image.width,
        "height": image.height,
        "observed_at_ms": int(observed_at * 1000),
        "kind": "image/png" if is_small else "image/jpeg",
    }
    send_picture(stream, head, png if is_small else jpeg_of(image))
