"""Regular expressions that people write, by RE2: no pattern can take more than linear time."""

from functools import lru_cache
from typing import Any

import re2

MAX_MEMORY = 256 * 2**10
"""RE2 refuses a pattern whose program is larger: time is linear in the text times the program."""


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    return re2.compile(pattern, options)


def check_pattern(pattern: str) -> None:
    """Raise ValueError, which says what is wrong with `pattern`."""
    matches(pattern, "")


def matches(pattern: str, text: str) -> bool:
    """True when `pattern` matches anywhere in `text`. Raises ValueError for a bad pattern."""
    try:
        return _compiled(pattern).search(text) is not None
    except re2.error as error:
        (said,) = error.args
        raise ValueError(said.decode() if isinstance(said, bytes) else said) from error
