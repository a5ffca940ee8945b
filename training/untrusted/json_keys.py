"""JSON objects whose keys stand once: of one that stands twice the last would count, without a word."""

from collections.abc import Iterable
from typing import Any


def with_unique_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An `object_pairs_hook`. Raises ValueError, which names the key."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:40]!r} is there twice")
        found[key] = value
    return found
