"""Text from outside (models, programs, desktops) as every database can hold it."""

import re
from typing import Any, TypeVar

T = TypeVar("T")

NUL, NUL_SYMBOL = "\x00", "\N{SYMBOL FOR NULL}"
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(value: T) -> T:
    """`value` with NUL shown as U+2400 and lone surrogates as U+FFFD, in strings at any depth.

    PostgreSQL holds NUL in no text and no JSON, and no database holds half of a surrogate pair; a policy may
    write either at any time. Its token ids stay exact.
    """
    return _storable(value)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return LONE_SURROGATE.sub(REPLACEMENT, value.replace(NUL, NUL_SYMBOL))
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value
