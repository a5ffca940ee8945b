"""When two trajectories of one task are near-identical: nearly the same actions on nearly the same screens.

Actions are compared one by one, points within `NEAR` pixels of each other, and one step in eight may differ;
screens by perceptual hashes (difference hashes of 8 x 8) at four moments.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from PIL import Image

from training.untrusted.pictures import open_picture
from webapp.trajectories.action_words import actions_of
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import TurnRecord

NEAR = 24
"""Pixels: about the height of a menu row."""
STEPS_PER_DIFFERENCE = 8
MAX_SCREEN_BITS = 24
"""Of 256, in which the hashes of near-identical screens may differ."""
NUM_MOMENTS = 4
MAX_WORDS = 80
Step = list[Any]
"""[kind, x, y, words]; x and y are None without a point."""


def outline_of(turns: Sequence[TurnRecord]) -> list[Step]:
    """What was done, with repeats of one action merged."""
    return [step for step, _ in groupby(_step(one) for turn in turns for one in actions_of(turn))]


def _step(action: dict[str, Any]) -> Step:
    words = action.get("text") or "+".join([*(action.get("modifiers") or ()), *(action.get("keys") or ())])
    scrolled = [str(action[name]) for name in ("scroll_x", "scroll_y") if action.get(name)]
    end = [str(action[name] // NEAR) for name in ("to_x", "to_y") if action.get(name) is not None]
    return [
        action.get("kind", ""),
        action.get("x"),
        action.get("y"),
        " ".join([words, *scrolled, *end]).strip()[:MAX_WORDS],
    ]


def screens_hash(frames: Sequence[str]) -> str:
    """64 hexadecimal digits for the screens (sha256) of a trajectory; "" when a file is missing."""
    if not frames:
        return ""
    last = len(frames) - 1
    moments = [frames[round(last * place / (NUM_MOMENTS - 1))] for place in range(NUM_MOMENTS)]
    try:
        hashes = {frame: difference_hash(read_frame(frame, "thumb.jpg")) for frame in set(moments)}
    except FileNotFoundError:
        return ""
    return "".join(f"{hashes[frame]:016x}" for frame in moments)


def difference_hash(jpeg: bytes) -> int:
    """64 bits: of 8 rows of 9 grey values, whether each is darker than its right neighbour."""
    image = open_picture(jpeg)
    image.draft("L", (72, 64))
    grey = image.convert("L").resize((9, 8), Image.Resampling.BOX).tobytes()
    bits = 0
    for place in range(72):
        if place % 9 != 8:
            bits = bits << 1 | (grey[place] < grey[place + 1])
    return bits


def alike(one: Sequence[Step], other: Sequence[Step], screens: str, other_screens: str) -> bool:
    """Whether two trajectories of one task are near-identical; without hashes the actions alone decide."""
    if screens and other_screens and differing_bits(screens, other_screens) > MAX_SCREEN_BITS:
        return False
    allowed = max(len(one), len(other)) // STEPS_PER_DIFFERENCE
    return differences(one, other, allowed) <= allowed


def differing_bits(screens: str, other: str) -> int:
    """Of two `screens_hash`."""
    return (int(screens, 16) ^ int(other, 16)).bit_count()


def differences(one: Sequence[Step], other: Sequence[Step], allowed: int) -> int:
    """Steps to change, add or leave out to get from one to the other; `allowed` + 1 stands for more."""
    if abs(len(one) - len(other)) > allowed:
        return allowed + 1
    if not allowed:
        return int(any(not same_step(a, b) for a, b in zip(one, other, strict=True)))
    row = list(range(len(other) + 1))
    for place, step in enumerate(one, start=1):
        above, row = row, [place]
        for column, their in enumerate(other, start=1):
            changed = above[column - 1] + (not same_step(step, their))
            row.append(min(changed, above[column] + 1, row[-1] + 1))
        if min(row) > allowed:
            return allowed + 1
    return min(row[-1], allowed + 1)


def same_step(one: Step, other: Step) -> bool:
    """Same kind and words, and points near each other."""
    if one[0] != other[0] or one[3] != other[3]:
        return False
    if one[1] is None or other[1] is None:
        return one[1] is other[1]
    return abs(one[1] - other[1]) <= NEAR and abs((one[2] or 0) - (other[2] or 0)) <= NEAR
