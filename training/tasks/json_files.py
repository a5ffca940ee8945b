"""JSON text of other people's files: with or without a byte order mark, with any of the three line ends.

U+2028 and U+0085 stand inside texts and end no line. What no database keeps is refused: NaN, numbers beyond
a double, NUL, half a surrogate pair. So is a key that stands twice in one object.
"""

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from training.untrusted.json_keys import with_unique_keys

NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape, not an escaped backslash before `u0000`; NUL itself is no JSON."""
LINE_END = re.compile(rb"\r\n|\r|\n")


def read_json(text: bytes) -> Any:
    """The value. Raises ValueError, which says where it breaks off within `text`."""
    text = text.removeprefix(BOM_UTF8)
    try:
        plain = text.decode()
        value = json.loads(
            plain, parse_constant=_finite, parse_float=_finite, object_pairs_hook=with_unique_keys
        )
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {error.start + 1} is 0x{text[error.start]:02x}") from error
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{error.msg} ({place})") from error
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a surrogate pair") from error
    if NUL.search(plain):
        raise ValueError("a text holds the character NUL")
    return value


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is no number that can be kept")
    return value


def numbered_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of the lines that hold something."""
    lines = LINE_END.split(data.removeprefix(BOM_UTF8))
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())
