"""Text from outside (models, programs, desktops) as every database can hold it."""

from typing import Any, TypeVar

T = TypeVar("T")

NUL, NUL_SYMBOL = "\x00", "\N{SYMBOL FOR NULL}"


def storable(value: T) -> T:
    """`value` with its NUL characters shown as U+2400, in strings at any depth of lists and dicts.

    PostgreSQL holds NUL in no text and no JSON; a policy may write one at any time. Its token ids stay exact.
    """
    return _storable(value)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(NUL, NUL_SYMBOL)
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value
