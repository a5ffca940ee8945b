"""What every value of a config must be before its own field looks at it: finite, storable, of sane size."""

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator

MAX_WHOLE = 2**53
"""Largest whole number that JSON readers hold exactly."""
MAX_TEXT = 100_000
MAX_ITEMS = 10_000
MAX_DEPTH = 12
MAX_PATH, MAX_NAME = 1024, 255
"""Characters of a path, and of one of its parts; file systems refuse more."""
UNUSABLE = re.compile("[\x00\ud800-\udfff]")


def unusable_values(values: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """(dotted path, message) of everything in nested plain values that no field could hold."""
    if depth > MAX_DEPTH:
        yield path, f"nested deeper than {MAX_DEPTH} levels"
    elif isinstance(values, dict | list | tuple):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        if len(values) > MAX_ITEMS:
            yield path, f"more than {MAX_ITEMS} values"
            return
        for key, value in items:
            yield from unusable_values(value, f"{path}.{str(key)[:60]}".lstrip("."), depth + 1)
    elif isinstance(values, str) and (len(values) > MAX_TEXT or UNUSABLE.search(values)):
        yield path, f"longer than {MAX_TEXT} characters, or not plain text"
    elif isinstance(values, float) and not math.isfinite(values):
        yield path, "must be a finite number"
    elif isinstance(values, int) and abs(values) > MAX_WHOLE:
        yield path, "is far too large"


def _checked_path(text: str) -> str:
    if text.startswith("~") and not (text == "~" or text.startswith("~/")):
        raise ValueError("write the folder of another user in full; only ~/ is read")
    if len(text) > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in text.split("/")):
        raise ValueError(f"longer than a path can be ({MAX_PATH} characters, {MAX_NAME} bytes for each part)")
    return text


PathText = Annotated[str, AfterValidator(_checked_path)]
"""A path as text: `~/` may begin it; "" = none."""
