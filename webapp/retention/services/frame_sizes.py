"""Sizes of stored screenshots."""

from webapp.trajectories.models import Frame
from webapp.trajectories.services.frames import frame_bytes


def measure_frames(limit: int) -> int:
    """Fill in the sizes of new frames; returns of how many."""
    new = list(Frame.objects.filter(num_bytes=None)[:limit])
    for frame in new:
        frame.num_bytes = frame_bytes(frame.sha256)
    Frame.objects.bulk_update(new, ["num_bytes"])
    return len(new)
