"""Storage names of screenshots, below the media folder or in the bucket."""

import re

FOLDER = "frames"
SHA256 = re.compile(r"^[0-9a-f]{64}$")


def frame_path(sha256: str, variant: str = "png") -> str:
    """Storage name of a frame's file. Raises ValueError when `sha256` is not a digest."""
    if not SHA256.match(sha256):
        raise ValueError(f"not a sha256: {sha256!r}")
    return f"{FOLDER}/{sha256[:2]}/{sha256}.{variant}"
